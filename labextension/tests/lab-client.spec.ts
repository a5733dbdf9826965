import { Signal } from '@lumino/signaling';
import type { Kernel } from '@jupyterlab/services';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { Clients, KernelClient, NoAnswer } from '../src/lab/client';
import { plain } from '../src/core/decode';

interface Sent {
  id: number;
  method: string;
  params: Record<string, unknown>;
}

class Comm {
  onMsg: (message: { content: { data: unknown } }) => void = () => undefined;
  onClose: () => void = () => undefined;
  isDisposed = false;
  commsOverSubshells = 'perCommTarget';
  subshellStarted = Promise.resolve();
  readonly sent: Sent[] = [];
  constructor(private readonly loaded: () => boolean, private readonly protocol: number) {}
  open(): void {
    void Promise.resolve().then(() => (this.loaded() ? this.say({ hello: { protocol: this.protocol, cute_lab: '0.1.0', schema: 3 } }) : this.onClose()));
  }
  say(data: unknown): void {
    this.onMsg({ content: { data } });
  }
  send(data: Sent): void {
    this.sent.push(data);
  }
  close(): { done: Promise<void> } {
    this.dispose();
    return { done: Promise.resolve() };
  }
  dispose(): void {
    this.isDisposed = true;
  }
}

class FakeKernel {
  isDisposed = false;
  supportsSubshells = true;
  status = 'idle';
  connectionStatus = 'connected';
  info = Promise.resolve({});
  readonly statusChanged = new Signal<this, string>(this);
  readonly disposed = new Signal<this, void>(this);
  readonly comms: Comm[] = [];
  loaded = true;
  protocol = 1;
  createComm(): Comm {
    const comm = new Comm(() => this.loaded, this.protocol);
    this.comms.push(comm);
    return comm;
  }
  get kernel(): Kernel.IKernelConnection {
    return this as unknown as Kernel.IKernelConnection;
  }
}

const settled = async (): Promise<void> => {
  await vi.advanceTimersByTimeAsync(10);
};
const why = (promise: Promise<unknown>): Promise<string> => promise.then(() => 'answered', error => (error instanceof NoAnswer ? error.why : String(error)));

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test('asks over one comm, and matches answers by their number', async () => {
  const kernel = new FakeKernel();
  const client = new KernelClient(kernel.kernel);
  const first = client.ask('hover', { line: 1 }, plain);
  const second = client.ask('status', {}, plain);
  await settled();
  expect(kernel.comms).toHaveLength(1);
  const [comm] = kernel.comms;
  expect(comm!.sent.map(sent => sent.method)).toEqual(['hover', 'status']);
  comm!.say({ id: comm!.sent[1]!.id, result: { b: 2 } });
  comm!.say({ id: comm!.sent[0]!.id, result: { a: 1 } });
  expect([await first, await second]).toEqual([{ a: 1 }, { b: 2 }]);
  expect(client.version).toBe('0.1.0');
});

test('the newest question of a lane wins, and one at most is with the kernel', async () => {
  const kernel = new FakeKernel();
  const client = new KernelClient(kernel.kernel);
  const asked = [1, 2, 3].map(n => client.ask('diagnose', { n }, plain, { lane: 'cell' }));
  const replaced = why(asked[1]!);
  const other = client.ask('diagnose', { n: 4 }, plain, { lane: 'other cell' });
  await settled();
  const comm = kernel.comms[0]!;
  expect(comm.sent.map(sent => sent.params['n'])).toEqual([1, 4]);
  expect(await replaced).toBe('superseded');
  comm.say({ id: comm.sent[0]!.id, result: { n: 1 } });
  await settled();
  expect(comm.sent.map(sent => sent.params['n'])).toEqual([1, 4, 3]);
  comm.say({ id: comm.sent[2]!.id, result: { n: 3 } });
  comm.say({ id: comm.sent[1]!.id, result: { n: 4 } });
  expect([await asked[0], await asked[2], await other]).toEqual([{ n: 1 }, { n: 3 }, { n: 4 }]);
});

test('a kernel without cute_lab is asked once, and again after a cell has run', async () => {
  const kernel = new FakeKernel();
  kernel.loaded = false;
  const client = new KernelClient(kernel.kernel);
  const states: string[] = [];
  client.changed.connect((_, state) => states.push(state));
  expect(await why(client.ask('status', {}, plain))).toBe('absent');
  expect(await why(client.ask('status', {}, plain))).toBe('absent');
  expect(kernel.comms).toHaveLength(1);
  expect(client.isWithoutLab).toBe(true);
  kernel.loaded = true;
  client.retry();
  expect(client.isWithoutLab).toBe(false);
  const asked = client.ask('status', {}, plain);
  await settled();
  const comm = kernel.comms[1]!;
  comm.say({ id: comm.sent[0]!.id, result: {} });
  expect(await asked).toEqual({});
  expect(states).toEqual(['opening', 'absent', 'unknown', 'opening', 'open']);
});

test('a kernel that says nothing may still load it', async () => {
  const kernel = new FakeKernel();
  kernel.createComm = () => Object.assign(new Comm(() => false, 1), { open: () => undefined });
  const client = new KernelClient(kernel.kernel);
  const asked = why(client.ask('status', {}, plain));
  await vi.advanceTimersByTimeAsync(5000);
  expect([await asked, client.state, client.isWithoutLab]).toEqual(['absent', 'absent', false]);
});

test('no answer in time, an error, an answer of another shape, and another protocol', async () => {
  const kernel = new FakeKernel();
  const client = new KernelClient(kernel.kernel);
  const late = why(client.ask('status', {}, plain, { timeout: 500 }));
  await vi.advanceTimersByTimeAsync(600);
  expect(await late).toBe('timeout');
  const comm = kernel.comms[0]!;
  const refused = client.ask('status', {}, plain);
  await settled();
  comm.say({ id: comm.sent[0]!.id, result: {} }); // the late one: nobody waits for it
  comm.say('nonsense');
  comm.say({ id: comm.sent[1]!.id, error: { message: 'no such thing' } });
  await expect(refused).rejects.toThrow('no such thing');
  const odd = client.ask('status', {}, plain);
  await settled();
  comm.say({ id: comm.sent[2]!.id, result: [] });
  await expect(odd).rejects.toThrow('status is not an object');

  const newer = new FakeKernel();
  newer.protocol = 2;
  await expect(new KernelClient(newer.kernel).ask('status', {}, plain)).rejects.toThrow('speaks protocol 2, this extension 1');
});

test('a restart closes the comm; the next question opens another', async () => {
  const kernel = new FakeKernel();
  const client = new KernelClient(kernel.kernel);
  const lost = why(client.ask('status', {}, plain));
  await settled();
  kernel.statusChanged.emit('restarting');
  expect(await lost).toBe('closed');
  expect(client.state).toBe('unknown');
  void why(client.ask('status', {}, plain));
  await settled();
  expect(kernel.comms.map(comm => comm.isDisposed)).toEqual([true, false]);
  kernel.disposed.emit();
  expect(kernel.comms[1]!.isDisposed).toBe(true);
  expect(await why(client.ask('status', {}, plain))).toBe('closed');
});

test('a busy kernel without subshells is not asked: the question would wait behind the cell', async () => {
  const kernel = new FakeKernel();
  kernel.supportsSubshells = false;
  kernel.status = 'busy';
  expect(await why(new KernelClient(kernel.kernel).ask('status', {}, plain))).toBe('busy');
  expect(kernel.comms).toHaveLength(0);
});

test('one client a kernel', () => {
  const clients = new Clients();
  const kernel = new FakeKernel();
  expect(clients.of(kernel.kernel)).toBe(clients.of(kernel.kernel));
  expect(clients.of(null)).toBeNull();
});
