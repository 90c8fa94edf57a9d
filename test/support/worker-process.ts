/**
 * A worker in a process of its own, for tests of what becomes of attempts when their process misbehaves. Its argument
 * is JSON: options of createWorker. What a task does is said by its payload: `{ "do": "<name below>", "ms": n }`, or a
 * `path` for what waits for a file.
 */
import { existsSync } from 'node:fs';
import { createWorker, type HandlerContext } from '../../src/index.ts';
import { createLogger } from '../../src/observe/log.ts';
import { TYPE } from './task-world.ts';

interface Wish {
  readonly do: string;
  readonly ms?: number;
  readonly path?: string;
}

const say = (line: string): void => console.log(line);
const wait = (ms = 0): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const deeds: Record<string, (ms: number | undefined, wish: Wish) => unknown> = {
  echo: (ms) => ms ?? null,
  wait: async (ms) => {
    await wait(ms);
    return 'waited';
  },
  'wait-for': async (_ms, { path = '' }) => {
    while (!existsSync(path)) await wait(10);
    return 'waited';
  },
  'block-until': (_ms, { path = '' }) => {
    const nobody = new Int32Array(new SharedArrayBuffer(4));
    while (!existsSync(path)) Atomics.wait(nobody, 0, 0, 10);
    return 'unblocked';
  },
  exit: (code = 3) => process.exit(code),
  'reject-after-return': () => {
    setImmediate(() => void Promise.reject(new Error('stray')));
    return 'returned';
  },
  'throw-after-return': () => {
    setImmediate(() => {
      throw new Error('uncaught');
    });
    return wait(10_000);
  },
};

const worker = createWorker({
  ...JSON.parse(process.argv[2] ?? '{}'),
  logger: createLogger({ logLevel: 'silent' }),
  types: {
    [TYPE]: (context: HandlerContext) => {
      const wish = context.payload as unknown as Wish;
      say(`started ${context.task.id} ${context.attempt}`);
      return deeds[wish.do]?.(wish.ms, wish);
    },
  },
  hooks: {
    completed: ({ task }: { task: { id: string } }) => say(`completed ${task.id}`),
    lost: ({ task, cause }: { task: { id: string }; cause: string }) => say(`lost ${task.id} ${cause}`),
    released: ({ task }: { task: { id: string } }) => say(`released ${task.id}`),
    strayRejection: (reason: unknown) => say(`stray ${String(reason)}`),
  },
});
// SIGTERM ends the process after the stop, whatever a handler still does; SIGINT leaves the end to an empty loop.
process.once('SIGTERM', () => void worker.stop().then(() => process.exit(0)));
process.once('SIGINT', () => void worker.stop());
await worker.start();
say(`ready ${worker.id}`);
