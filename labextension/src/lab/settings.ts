/** The settings, as plain values; their defaults where there is no registry. */

import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import { Signal } from '@lumino/signaling';

export const PLUGIN = 'cute-lab:plugin';
export type ChartTheme = 'auto' | 'light' | 'dark';

export class Settings {
  readonly changed = new Signal<Settings, void>(this);
  defaultTarget = 'auto';
  debounce = 150;
  annotations = true;
  chartTheme: ChartTheme = 'auto';
  privateFields: readonly string[] = [];
  panelOnStart = false;

  async follow(registry: ISettingRegistry): Promise<void> {
    const settings = await registry.load(PLUGIN);
    const read = (): void => {
      const all = settings.composite;
      this.defaultTarget = typeof all['defaultTarget'] === 'string' ? all['defaultTarget'] : 'auto';
      this.debounce = typeof all['debounce'] === 'number' ? Math.min(5000, Math.max(50, all['debounce'])) : 150;
      this.annotations = all['annotations'] !== false;
      this.chartTheme = all['chartTheme'] === 'light' || all['chartTheme'] === 'dark' ? all['chartTheme'] : 'auto';
      this.privateFields = Array.isArray(all['privateFields']) ? all['privateFields'].filter(field => typeof field === 'string') : [];
      this.panelOnStart = all['panelOnStart'] === true;
      this.changed.emit();
    };
    settings.changed.connect(read);
    read();
  }
}
