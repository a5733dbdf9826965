/** Asks the kernel of a notebook over one comm: opened when first needed, again after a restart. The newest question of a kind wins. */

import type { Kernel } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import type { Decoder } from '../core/decode';
import { hello, PROTOCOL, reply, TARGET } from './protocol';

/** Why there is no answer. `absent`: cute_lab is not loaded in the kernel; `superseded`: a newer question took its place. */
export class NoAnswer extends Error {
  constructor(
    readonly why: 'absent' | 'busy' | 'timeout' | 'superseded' | 'closed' | 'refused' | 'version',
    message: string = why
  ) {
    super(message);
  }
}

export type State = 'unknown' | 'opening' | 'open' | 'absent';

interface Question {
  readonly id: number;
  readonly method: string;
  readonly params: Record<string, unknown>;
  readonly timeout: number;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: NoAnswer) => void;
}

export interface AskOptions {
  /** Questions of one lane replace each other; by default the method. */
  readonly lane?: string;
  readonly timeout?: number;
}

const OPENING = 4000; // ms until a kernel that says nothing is taken for one without cute_lab

export class KernelClient implements IDisposable {
  /** The state has changed: what was static only may be asked again, or the other way round. */
  readonly changed = new Signal<KernelClient, State>(this);
  private current: State = 'unknown';
  private comm: Kernel.IComm | null = null;
  private opened: Promise<void> | null = null;
  private count = 0;
  private readonly flying = new Map<number, Question>();
  private readonly lanes = new Map<string, { flying: number; next: Question | null }>();
  private disposed = false;
  private refusal: NoAnswer | null = null; // of another version: a reason worth repeating
  private silent = false;
  /** cute_lab's version in the kernel, from its first message. */
  version = '';

  constructor(private readonly kernel: Kernel.IKernelConnection) {
    kernel.statusChanged.connect(this.onStatus, this);
    kernel.disposed.connect(this.dispose, this);
  }

  get state(): State {
    return this.current;
  }

  /** Has the kernel itself said that it does not know us? One that only says nothing may be slow. */
  get isWithoutLab(): boolean {
    return this.current === 'absent' && !this.silent && !this.refusal;
  }

  get isDisposed(): boolean {
    return this.disposed;
  }

  /** After a cell has run, cute_lab may be there. Opens only where somebody asks. */
  retry(): void {
    if (this.current === 'absent') {
      this.refusal = null;
      this.become('unknown');
    }
  }

  async ask<T>(method: string, params: Record<string, unknown>, decoder: Decoder<T>, options: AskOptions = {}): Promise<T> {
    await this.open();
    const lane = options.lane ?? method;
    const result = await new Promise<unknown>((resolve, reject) => {
      const question = { id: ++this.count, method, params, timeout: options.timeout ?? 5000, resolve, reject };
      const at = this.lanes.get(lane);
      if (at) {
        at.next?.reject(new NoAnswer('superseded'));
        at.next = question; // at most one question of a lane is with the kernel, so that typing can't flood it
      } else {
        this.lanes.set(lane, { flying: question.id, next: null });
        this.send(question, lane);
      }
    });
    return decoder(result, method);
  }

  dispose(): void {
    if (this.disposed) {
      return;
    }
    this.disposed = true;
    this.kernel.statusChanged.disconnect(this.onStatus, this);
    this.kernel.disposed.disconnect(this.dispose, this);
    this.close(true);
    Signal.clearData(this);
  }

  private send(question: Question, lane: string): void {
    const done = (): void => {
      clearTimeout(timer);
      this.flying.delete(question.id);
      const next = this.lanes.get(lane)?.next;
      if (next) {
        this.lanes.set(lane, { flying: next.id, next: null });
        this.send(next, lane);
      } else {
        this.lanes.delete(lane);
      }
    };
    const timer = setTimeout(() => {
      done();
      question.reject(new NoAnswer('timeout', `the kernel has not answered in ${question.timeout / 1000} s`));
    }, question.timeout);
    this.flying.set(question.id, {
      ...question,
      resolve: result => {
        done();
        question.resolve(result);
      },
      reject: error => {
        done();
        question.reject(error);
      }
    });
    try {
      this.comm?.send({ id: question.id, method: question.method, params: question.params as never });
    } catch (error) {
      this.flying.get(question.id)?.reject(new NoAnswer('closed', String(error)));
    }
  }

  private open(): Promise<void> {
    if (this.disposed) {
      return Promise.reject(new NoAnswer('closed'));
    }
    if (this.current === 'absent') {
      return Promise.reject(this.refusal ?? new NoAnswer('absent'));
    }
    if (!this.kernel.supportsSubshells && this.kernel.status === 'busy') {
      return Promise.reject(new NoAnswer('busy', 'the kernel is running a cell')); // a question would wait behind it
    }
    this.opened ??= this.connect();
    return this.opened;
  }

  private async connect(): Promise<void> {
    this.become('opening');
    try {
      await this.kernel.info;
      const comm = this.kernel.createComm(TARGET);
      this.comm = comm;
      await onSubshell(comm, this.kernel.supportsSubshells);
      await new Promise<void>((resolve, reject) => {
        const timer = setTimeout(() => {
          this.silent = true;
          reject(new NoAnswer('absent'));
        }, OPENING);
        comm.onClose = () => {
          clearTimeout(timer);
          this.silent = false;
          reject(new NoAnswer('absent'));
          if (this.comm === comm) {
            this.lost('absent');
          }
        };
        comm.onMsg = message => {
          const data: unknown = message.content.data;
          if (this.current === 'open') {
            this.answered(data);
            return;
          }
          clearTimeout(timer);
          try {
            const said = hello(data, 'hello').hello;
            if (said.protocol !== PROTOCOL) {
              throw new NoAnswer('version', `cute_lab ${said.cute_lab} in the kernel speaks protocol ${said.protocol}, this extension ${PROTOCOL}`);
            }
            this.version = said.cute_lab;
            resolve();
          } catch (error) {
            reject(error instanceof NoAnswer ? error : new NoAnswer('version', String(error)));
          }
        };
        comm.open();
      });
      this.become('open');
    } catch (error) {
      const why = error instanceof NoAnswer ? error : new NoAnswer('closed', String(error));
      this.refusal = why.why === 'version' ? why : null;
      this.silent ||= why.why === 'closed'; // the connection failed, which says nothing of cute_lab
      this.lost('absent');
      throw why;
    }
  }

  private answered(data: unknown): void {
    let found;
    try {
      found = reply(data, 'reply');
    } catch {
      return; // no answer to anything: the question's timeout says so
    }
    const question = this.flying.get(found.id);
    if (found.error === undefined) {
      question?.resolve(found.result);
    } else {
      question?.reject(new NoAnswer('refused', found.error));
    }
  }

  private onStatus(_: unknown, status: Kernel.Status): void {
    if (status === 'restarting' || status === 'autorestarting' || status === 'dead') {
      this.lost('unknown');
    }
  }

  private lost(state: State): void {
    this.close(false);
    this.become(state);
  }

  private close(tell: boolean): void {
    const comm = this.comm;
    this.comm = null;
    this.opened = null;
    for (const lane of this.lanes.values()) {
      lane.next?.reject(new NoAnswer('closed'));
    }
    this.lanes.clear();
    for (const question of [...this.flying.values()]) {
      question.reject(new NoAnswer('closed'));
    }
    if (comm && !comm.isDisposed) {
      try {
        comm.onClose = () => undefined;
        if (tell && !this.kernel.isDisposed && this.kernel.connectionStatus === 'connected') {
          void comm.close().done.catch(() => undefined);
        } else {
          comm.dispose();
        }
      } catch {
        comm.dispose(); // the connection went in the meantime
      }
    }
  }

  private become(state: State): void {
    if (state !== this.current) {
      this.current = state;
      if (!this.disposed) {
        this.changed.emit(state);
      }
    }
  }
}

/** JupyterLab sends a comm's messages over a subshell of its own once that is there, so that a running cell does not hold them up. */
async function onSubshell(comm: Kernel.IComm, supported: boolean): Promise<void> {
  const started = (comm as { subshellStarted?: Promise<void> }).subshellStarted;
  if (supported && started && comm.commsOverSubshells !== 'disabled') {
    await Promise.race([started, new Promise(resolve => setTimeout(resolve, 3000))]);
  }
}

/** The clients of all kernels. */
export class Clients {
  private readonly known = new WeakMap<Kernel.IKernelConnection, KernelClient>();

  of(kernel: Kernel.IKernelConnection | null | undefined): KernelClient | null {
    if (!kernel || kernel.isDisposed) {
      return null;
    }
    let client = this.known.get(kernel);
    if (!client) {
      client = new KernelClient(kernel);
      this.known.set(kernel, client);
    }
    return client;
  }
}
