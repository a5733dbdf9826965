/** Colours of the page, for canvases: they can't read CSS variables by themselves. */

import type { Disposable } from './dom';

/** `var(--name)` as the element sees it, or the fallback. */
export function colour(element: Element, name: string, fallback: string): string {
  return getComputedStyle(element).getPropertyValue(name).trim() || fallback;
}

/** Red, green, blue and opacity of 255 each. Only a pixel tells them of `oklch(1 0 0)` and the like, as marimo writes them. */
export function channels(text: string, pixel: (text: string) => readonly number[] | null = painted): readonly number[] | null {
  const [r, g, b, a = 1] = /^rgba?\(/.test(text) ? (text.match(/[\d.]+/g) ?? []).map(Number) : [];
  return r !== undefined && g !== undefined && b !== undefined ? [r, g, b, 255 * a] : text && text !== 'transparent' ? pixel(text) : null;
}

function painted(text: string): readonly number[] | null {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 1;
  const context = canvas.getContext('2d');
  if (!context) {
    return null;
  }
  context.fillStyle = text;
  context.fillRect(0, 0, 1, 1);
  return [...context.getImageData(0, 0, 1, 1).data];
}

/** Is the ground that the element stands on dark? */
export function isDark(element: Element): boolean {
  for (let at: Element | null = element; at; at = at.parentElement ?? ((at.getRootNode() as Partial<ShadowRoot>).host ?? null)) {
    const [r = 255, g = 255, b = 255, opacity = 0] = channels(getComputedStyle(at).backgroundColor) ?? [];
    if (opacity > 128) {
      return 0.299 * r + 0.587 * g + 0.114 * b < 128;
    }
  }
  return false;
}

/** Calls back when the page changes its theme: JupyterLab writes it into attributes of the body, other pages follow the system. */
export function onTheme(act: () => void): Disposable {
  const observer = new MutationObserver(act);
  for (const root of [document.body, document.documentElement]) {
    observer.observe(root, { attributes: true, attributeFilter: ['data-jp-theme-name', 'data-jp-theme-light', 'class', 'data-theme'] });
  }
  const query = typeof matchMedia === 'function' ? matchMedia('(prefers-color-scheme: dark)') : null;
  query?.addEventListener('change', act);
  return {
    dispose: () => {
      observer.disconnect();
      query?.removeEventListener('change', act);
    }
  };
}
