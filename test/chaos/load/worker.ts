/**
 * A worker of the chaos stand, in a process of its own: `worker.ts NAME CONCURRENCY RELEASE_FILE`. What an attempt does is
 * said by its payload: see wishes.ts. The release that the file names says which versions it knows; its id tells of it.
 */
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { createWorker, type HandlerContext, NotRetryable } from '../../../src/index.ts';
import { workerOf } from './releases.ts';
import { TYPES, VERSIONED, type Wish } from './wishes.ts';

const [, , name = 'worker', concurrency = '8', releaseFile = ''] = process.argv;
const release = Number(await readFile(releaseFile, 'utf8'));

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
  id: workerOf(name, release),
  concurrency: Number(concurrency),
  types: Object.fromEntries(
    Object.keys(TYPES).map((type) => [
      type,
      type === VERSIONED ? { handler: fulfil, versions: [1, release] as const } : fulfil,
    ]),
  ),
  shutdownGraceMs: 5_000,
});
let stopping = false;
process.on('SIGTERM', () => {
  if (stopping) return;
  stopping = true;
  void worker.stop().then(() => process.exit(0));
});
await worker.start();
