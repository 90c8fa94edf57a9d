import { setTimeout as delay } from 'node:timers/promises';

/** Whether it came true in time. Servers may still be electing: a question that fails is asked again. */
export async function cameTrue(
  isSo: () => Promise<boolean>,
  { withinMs, pollMs }: { readonly withinMs: number; readonly pollMs: number },
): Promise<boolean> {
  for (const deadline = Date.now() + withinMs; Date.now() < deadline; await delay(pollMs))
    if (await isSo().catch(() => false)) return true;
  return false;
}
