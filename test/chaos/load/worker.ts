/** A worker of the chaos stand, in a process of its own. What an attempt does is said by its payload: see wishes.ts. */
import { setTimeout as delay } from 'node:timers/promises';
import { createWorker, type HandlerContext, NotRetryable } from '../../../src/index.ts';
import { TYPES, type Wish } from './wishes.ts';

const [, , name = 'worker', concurrency = '8'] = process.argv;

async function fulfil({ payload, attempt, signal }: HandlerContext): Promise<{ attempt: number }> {
  const { badAttempts, bad, ms } = payload as unknown as Wish;
  await delay(ms, undefined, { signal });
  if (attempt > badAttempts) return { attempt };
  switch (bad) {
    case 'crash':
      return process.exit(3);
    case 'hopeless':
      throw new NotRetryable('hopeless by wish');
    case 'fail':
      throw new Error(`attempt ${attempt} fails by wish`);
    default:
      return bad satisfies never;
  }
}

const worker = createWorker({
  id: name,
  concurrency: Number(concurrency),
  types: Object.fromEntries(Object.keys(TYPES).map((type) => [type, fulfil])),
  shutdownGraceMs: 5_000,
});
let stopping = false;
process.on('SIGTERM', () => {
  if (stopping) return;
  stopping = true;
  void worker.stop().then(() => process.exit(0));
});
await worker.start();
