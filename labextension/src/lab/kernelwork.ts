/** Code that the extension runs in the kernel for a person, its text collected. */

import type { Kernel } from '@jupyterlab/services';

// eslint-disable-next-line no-control-regex
const ANSI = /\u001b\[[\d;]*m/g;

export interface Said {
  readonly text: string;
  readonly ok: boolean;
}

/** Leaves neither history nor a number. */
export async function say(kernel: Kernel.IKernelConnection, code: string): Promise<Said> {
  const parts: string[] = [];
  let ok = true;
  const future = kernel.requestExecute({ code, store_history: false, allow_stdin: false, stop_on_error: false });
  future.onIOPub = message => {
    const content = message.content as Record<string, unknown>;
    const data = content['data'] as Record<string, unknown> | undefined;
    switch (message.header.msg_type) {
      case 'stream':
        parts.push(String(content['text']));
        break;
      case 'execute_result':
      case 'display_data':
        parts.push(String(data?.['text/markdown'] ?? data?.['text/plain'] ?? ''));
        break;
      case 'error':
        ok = false;
        parts.push(Array.isArray(content['traceback']) ? content['traceback'].join('\n') : String(content['evalue']));
        break;
    }
  };
  await future.done;
  return { text: parts.join('').replace(ANSI, '').trim(), ok };
}
