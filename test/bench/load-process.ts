import { type ChildProcess, fork } from 'node:child_process';
import { builtLoad } from './built.ts';
import type { ProducerCalls, Progress, Reply, WorkerCalls } from './load/messages.ts';

type Result<F> = F extends (...args: never) => infer R ? R : never;
type Order<F> = F extends (order: infer O) => unknown ? O : undefined;

/** A load process as the bench sees it: typed calls, and the progress of a worker. */
export interface LoadProcess<Calls> {
  readonly pid: number;
  call<K extends keyof Calls & string>(
    name: K,
    order?: Order<Calls[K]>,
    timeoutMs?: number,
  ): Promise<Result<Calls[K]>>;
  /** Tasks that a worker has completed since it began, and when the last of them was. */
  progress(): Progress;
  onProgress(listener: (newlyCompleted: number) => void): void;
  /** Ends it in order, by SIGKILL when it does not end. */
  end(): Promise<void>;
}

export type Producer = LoadProcess<ProducerCalls>;
export type LoadWorker = LoadProcess<WorkerCalls>;

const CALL_TIMEOUT_MS = 180_000;
const END_TIMEOUT_MS = 20_000;

export const startProducer = (nodeArgs: readonly string[] = []): Producer =>
  startLoad<ProducerCalls>('producer', nodeArgs);
export const startLoadWorker = (nodeArgs: readonly string[] = []): LoadWorker =>
  startLoad<WorkerCalls>('worker', nodeArgs);

function startLoad<Calls>(name: 'producer' | 'worker', nodeArgs: readonly string[]): LoadProcess<Calls> {
  const child = fork(builtLoad(name), [], {
    execArgv: [...nodeArgs],
    // Stdout is for figures alone.
    stdio: ['ignore', process.stderr, process.stderr, 'ipc'],
    env: { PATH: process.env['PATH'] ?? '', TASKLEDGER_LOG_LEVEL: 'warn' },
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`the ${name} could not be started`);
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  let progress: Progress = { completed: 0, atUs: 0 };
  let listener: (newlyCompleted: number) => void = () => {};
  let requests = 0;
  const gone = whenGone(child, (reason) => {
    for (const caller of waiting.values()) caller.reject(new Error(`the ${name} ${reason}`));
  });
  child.on('message', (message: Reply | Progress) => {
    if ('completed' in message) {
      const newlyCompleted = message.completed - progress.completed;
      progress = message;
      listener(newlyCompleted);
      return;
    }
    const caller = waiting.get(message.id);
    waiting.delete(message.id);
    if ('error' in message) caller?.reject(new Error(`${name}: ${message.error}`));
    else caller?.resolve(message.value);
  });

  const call: LoadProcess<Calls>['call'] = (callName, order, timeoutMs = CALL_TIMEOUT_MS) =>
    new Promise((resolve, reject) => {
      const id = ++requests;
      const timer = setTimeout(() => {
        waiting.delete(id);
        reject(new Error(`the ${name} did not answer "${callName}" in ${timeoutMs} ms`));
      }, timeoutMs);
      const settle =
        <A>(use: (answer: A) => void) =>
        (answer: A): void => {
          clearTimeout(timer);
          use(answer);
        };
      waiting.set(id, {
        resolve: settle(resolve as (value: unknown) => void),
        reject: settle(reject),
      });
      const isGone = (): void => waiting.get(id)?.reject(new Error(`the ${name} is gone`));
      if (!child.connected) isGone();
      else {
        child.send({ id, call: callName, order }, (error) => {
          if (error !== null) isGone();
        });
      }
    });

  return {
    pid,
    call,
    progress: () => progress,
    onProgress(next) {
      listener = next;
    },
    async end() {
      const timer = setTimeout(() => child.kill('SIGKILL'), END_TIMEOUT_MS);
      if (child.connected) child.send({ id: ++requests, call: 'end' }, () => undefined);
      await gone;
      clearTimeout(timer);
    },
  };
}

function whenGone(child: ChildProcess, use: (reason: string) => void): Promise<void> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      use(`ended with ${signal ?? code}`);
      resolve();
    });
  });
}
