/** The GPU and the targets in the side panel. */

import { h } from '../core/dom';
import type { Translate } from '../core/i18n';
import { clean, number } from '../core/text';
import type { Gpu } from './protocol';
import { gigabytes } from './situation';
import type { Situation } from './situation';

export interface DeviceDo {
  readonly trans: Translate;
  readonly load: () => void;
  readonly stop: () => void;
}

export function drawDevice(now: Situation, act: DeviceDo): HTMLElement[] {
  const { trans } = act;
  switch (now.kind) {
    case 'no-notebook':
      return [faint(trans.__('The state of the GPU that the notebook’s kernel sees.'))];
    case 'no-kernel':
      return [faint(trans.__('This notebook has no kernel. Saved runs can be looked at, pinned and compared without one.'))];
    case 'not-loaded':
      return [
        faint(trans.__('cute_lab is not loaded in this notebook’s kernel. Cells are checked by their text alone until it is.')),
        h('button', { type: 'button', class: 'jp-CuteLab-button', onclick: act.load }, trans.__('Run %load_ext cute_lab'))
      ];
    case 'problem':
      return [faint(clean(now.words))];
    case 'known': {
      const { status } = now;
      const targets = status.targets.length
        ? [h('p', { class: 'jp-CuteLab-targets' }, trans.__('Compiles for'), ' ', ...status.targets.map(name => h('span', { class: 'jp-CuteLab-chip jp-CuteLab-chip-plain' }, clean(name))))]
        : [];
      const running = status.running
        ? [
            h(
              'p',
              { class: 'jp-CuteLab-running', 'aria-live': 'polite' },
              h('span', {}, clean(status.running.what), status.running.left_seconds === null ? null : trans.__(', about %1 s left', Math.ceil(status.running.left_seconds))),
              h('button', { type: 'button', class: 'jp-CuteLab-button', onclick: act.stop }, trans.__('Stop'))
            )
          ]
        : [];
      return [...running, ...(status.gpus.length ? status.gpus.map(gpu => drawGpu(gpu, trans)) : noGpu(trans, clean(status.words))), ...targets];
    }
  }
}

function drawGpu(gpu: Gpu, trans: Translate): HTMLElement {
  const { memory_used: used, memory_total: total } = gpu;
  const memory = used !== null && total ? trans.__('%1 of %2 GB in use', gigabytes(used), gigabytes(total)) : '';
  const gauges: [string, number | null, string][] = [
    [trans.__('clock'), gpu.sm_mhz, 'MHz'],
    [trans.__('busy'), gpu.utilization, '%'],
    [trans.__('heat'), gpu.celsius, '°C'],
    [trans.__('power'), gpu.watts, 'W']
  ];
  return h(
    'div',
    { class: 'jp-CuteLab-gpu' },
    h('div', { class: 'jp-CuteLab-gpu-head' }, h('strong', {}, clean(gpu.name.replace(/^NVIDIA /, ''))), gpu.target ? h('span', { class: 'jp-CuteLab-chip jp-CuteLab-chip-plain' }, clean(gpu.target)) : null),
    memory ? h('meter', { class: 'jp-CuteLab-meter', min: 0, max: 1, value: Math.min(1, (used ?? 0) / (total ?? 1)), 'aria-label': memory }) : null,
    memory ? h('div', { class: 'jp-CuteLab-faint' }, memory) : null,
    h('dl', { class: 'jp-CuteLab-gauges' }, ...gauges.flatMap(([name, value, unit]) => (value === null ? [] : [h('div', {}, h('dt', {}, name), h('dd', {}, `${number(value)} ${unit}`))])))
  );
}

function noGpu(trans: Translate, words: string): HTMLElement[] {
  const works = [
    trans.__('the generated CuTeDSL, checked on the CPU'),
    trans.__('block maps up to a million tokens'),
    trans.__('PTX, SASS, registers and spills for every target')
  ];
  const reach = [
    [trans.__('Kernel on a GPU host, over ssh:'), 'pip install sshpyk'],
    [trans.__('All kernels there:'), 'jupyter lab --gateway-url=http://HOST:8888']
  ];
  const nodes = [
    h('p', { class: 'jp-CuteLab-gpu-head' }, h('strong', {}, trans.__('No GPU here'))),
    words.startsWith('No GPU here') ? null : faint(words), // the same in other words below
    h('p', {}, trans.__('Works without one:')),
    h('ul', { class: 'jp-CuteLab-works' }, ...works.map(item => h('li', {}, item))),
    h(
      'details',
      { class: 'jp-CuteLab-reach' },
      h('summary', {}, trans.__('Reach a GPU from this notebook')),
      ...reach.flatMap(([why = '', code = '']) => [h('p', {}, why), h('pre', { class: 'jp-CuteLab-sample' }, code)]),
      faint(trans.__('The page and the records stay here; only the kernel runs there.'))
    )
  ];
  return nodes.filter(node => node !== null);
}

function faint(words: string): HTMLElement {
  return h('p', { class: 'jp-CuteLab-faint' }, words);
}
