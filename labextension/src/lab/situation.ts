/** What is known of the current notebook's kernel, and the words for it. */

import type { Status } from './protocol';

export type Situation =
  | { kind: 'no-notebook' }
  | { kind: 'no-kernel' }
  | { kind: 'not-loaded'; cute: boolean } // cute: the notebook speaks of cute_lab
  | { kind: 'problem'; words: string }
  | { kind: 'known'; status: Status };

/** Does the kernel say that it has no GPU? It can't tell where the package that asks the driver is missing. */
export function lacksGpu(now: Situation): boolean {
  return now.kind === 'known' && !now.status.cuda && !now.status.words.startsWith('nvidia-ml-py');
}

/** In the status bar: short. */
export function shortWords(found: Status): string {
  const [gpu] = found.gpus;
  if (gpu) {
    const more = found.gpus.length > 1 ? ` × ${found.gpus.length}` : '';
    const memory = gpu.memory_used !== null && gpu.memory_total ? ` · ${gigabytes(gpu.memory_used)} / ${gigabytes(gpu.memory_total)} GB` : '';
    return `${gpu.name.replace(/^NVIDIA /, '')}${more}${memory}`;
  }
  return found.targets.join(', ');
}

export function gigabytes(bytes: number): string {
  const value = bytes / 1e9;
  return value >= 100 ? value.toFixed(0) : value.toFixed(1);
}
