import { setTimeout as delay } from 'node:timers/promises';
import type { ChildServer } from './child-server.ts';

const POLL_MS = 20;
const TAIL_LINES = 12;

export interface Startup {
  /** What the server writes once it listens. Only its own word counts: on a taken port another server would answer. */
  readonly readyLine: string;
  /** Tries to use the server; rejects while it cannot be used. */
  readonly probe: () => Promise<void>;
  readonly timeoutMs: number;
}

/**
 * Waits until the server can be used. Otherwise, when it has ended or the time is over, answers why, in the server's
 * last words; then it no longer runs.
 */
export async function whyNotUp(
  child: ChildServer,
  { readyLine, probe, timeoutMs }: Startup,
): Promise<string | undefined> {
  let hasEnded = false;
  const end = child.exited.then(() => {
    hasEnded = true;
  });
  let problem = `it did not say "${readyLine}"`;
  for (const deadline = Date.now() + timeoutMs; !hasEnded && Date.now() < deadline; ) {
    if ((await child.output()).includes(readyLine)) {
      try {
        await probe();
        return undefined;
      } catch (error) {
        problem = error instanceof Error ? error.message : String(error);
      }
    }
    await Promise.race([delay(POLL_MS), end]);
  }
  const words = (await child.output()).split('\n').slice(-TAIL_LINES).join('\n');
  if (hasEnded) {
    const { code, signal } = await child.exited;
    return `it ended with ${signal ?? `code ${code}`}: ${words}`;
  }
  await child.stop();
  return `not ready after ${timeoutMs} ms (${problem}): ${words}`;
}
