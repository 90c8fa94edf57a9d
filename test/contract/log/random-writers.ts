import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fold, type TaskState } from '../../../src/domain/task.ts';
import { execute } from '../../../src/log/handle.ts';
import type { OpenedLog } from '../../../src/log/open.ts';
import { commandOf, MOVES, type Move, newIds, TENANT } from './tasks.ts';
import type { Ground } from './world.ts';

const RUNS = 60;

export function anyTwoWritersLeaveALegalHistory(ground: () => Ground): void {
  test(`two writers with stale views and random commands leave a legal history, in ${RUNS} runs`, async () => {
    const logs = [await ground().open(), await ground().open()];
    const script = fc.array(fc.constantFrom(...MOVES), { minLength: 1, maxLength: 25 });
    await fc.assert(
      fc.asyncProperty(script, script, async (...scripts) => {
        const [id = ''] = newIds(1);
        const accepted = await Promise.all(logs.map((log, n) => write(log, id, scripts[n] ?? [])));
        const [log] = logs;
        const events = (await log?.readTask(TENANT, id, Math.max(0, ...accepted.flat()))) ?? [];
        // Folding throws IllegalHistory for anything that no writer could have decided.
        expect(fold(events)?.seq).toBe(events.at(-1)?.seq);
        expect(events.map(({ seq }) => seq)).toEqual(accepted.flat().toSorted((a, b) => a - b));
      }),
      { numRuns: RUNS },
    );
  }, 120_000);
}

/** Sends the commands one after another, each from what the writer saw last; answers the sequences it was given. */
async function write(log: OpenedLog, taskId: string, script: readonly Move[]): Promise<number[]> {
  const accepted: number[] = [];
  let view: TaskState | undefined;
  for (const move of script) {
    const done = await execute(log, { tenant: TENANT, taskId, known: view ?? 'none' }, (state) =>
      commandOf(move, taskId, state),
    );
    if (!done.ok) continue;
    accepted.push(done.value.seq);
    view = done.value.state;
  }
  return accepted;
}
