import { setTimeout as delay } from 'node:timers/promises';
import type { Victim } from './victim.ts';

/** How often the snapshots are tried to be thrown away while the brokers are hurt, and the pause in between. */
const TRIES = 20;
const AGAIN_AFTER_MS = 500;

/**
 * A deployment of the dispatchers. `one`: the first is restarted beside the others, and takes up the last snapshot. `afresh`:
 * all stop before any starts again, and the snapshots are thrown away meanwhile, so that each reads the log from its beginning.
 */
export async function redeploy(
  dispatchers: readonly Victim[],
  how: 'one' | 'afresh',
  forget: () => Promise<void>,
): Promise<void> {
  const meant = how === 'one' ? dispatchers.slice(0, 1) : dispatchers;
  await Promise.all(meant.map((dispatcher) => dispatcher.stop()));
  if (how === 'afresh') await tryOften(forget);
  await Promise.all(meant.map((dispatcher) => dispatcher.start()));
}

/** Without success they begin from what is there: nothing depends on it but what the run shows. */
async function tryOften(forget: () => Promise<void>): Promise<void> {
  for (let tried = 0; tried < TRIES; tried += 1) {
    try {
      return await forget();
    } catch {
      await delay(AGAIN_AFTER_MS);
    }
  }
}
