import type { JetStreamManager } from '@nats-io/jetstream';
import { TaskledgerError } from '../domain/errors.ts';
import { messageFrom } from '../log/history.ts';
import type { Names } from '../log/subjects.ts';
import type { BackedUpStream } from './manifest.ts';
import { infoOf } from './presence.ts';

/**
 * TASKS and HISTORY belong together: HISTORY notes which sequence of TASKS it has come to and draws from the next one on.
 * Beside another TASKS, or an older one, it would pass over events that have sequences which it has seen already.
 *
 * Answers what will be in neither of the two although nobody refuses. Throws `restore_inseparable`.
 */
export async function requireOneLog(
  jsm: JetStreamManager,
  {
    names,
    held,
    chosen,
  }: {
    readonly names: Names;
    /** All that the backup holds. */
    readonly held: readonly BackedUpStream[];
    readonly chosen: readonly BackedUpStream[];
  },
): Promise<readonly string[]> {
  const { tasks, history } = names.streams;
  const named = (list: readonly BackedUpStream[], name: string) => list.find((each) => each.name === name);
  const drawn = named(chosen, history);
  if (named(chosen, tasks) !== undefined) {
    if (drawn !== undefined) return [];
    if (named(held, history) === undefined && (await infoOf(jsm, history)) === undefined) return [];
    throw inseparable(
      tasks,
      'it counts on from an older event, and HISTORY would pass over as many new ones',
    );
  }
  if (drawn === undefined) return [];
  const log = await infoOf(jsm, tasks);
  if (log === undefined) throw inseparable(history, 'there is no TASKS that it could draw from');
  const { first_seq: firstSeq, last_seq: lastSeq } = log.state;
  const upTo = drawn.sourceSeq ?? 0;
  if (lastSeq < upTo)
    throw inseparable(history, `TASKS ends at event ${lastSeq}, and it has come to ${upTo} already`);
  if (await isOther(jsm, named(held, tasks), { firstSeq, lastSeq }))
    throw inseparable(history, 'TASKS is another log than the one it was drawn from');
  if (firstSeq <= upTo + 1) return [];
  return [
    `TASKS begins at event ${firstSeq}: events ${upTo + 1} to ${firstSeq - 1} will be in neither of them`,
  ];
}

/** Whether TASKS has another event where the backup ends. What is out of its hot window cannot be told. */
async function isOther(
  jsm: JetStreamManager,
  backedUp: BackedUpStream | undefined,
  { firstSeq, lastSeq }: { firstSeq: number; lastSeq: number },
): Promise<boolean> {
  const end = backedUp?.lastSeq ?? 0;
  if (backedUp === undefined || end === 0 || end < firstSeq || end > lastSeq) return false;
  const found = await messageFrom(jsm, backedUp.name, end);
  const storedAt = (backedUp.state as { last_ts?: string }).last_ts;
  if (found?.seq !== end || storedAt === undefined) return false;
  return found.time.getTime() !== Date.parse(storedAt);
}

const inseparable = (stream: string, reason: string): TaskledgerError =>
  new TaskledgerError('restore_inseparable', { stream, reason });
