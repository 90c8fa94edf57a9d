import { z } from 'zod';
import { TaskledgerError } from '../domain/errors.ts';
import { DeadLetterReasonSchema } from '../domain/events.ts';
import { JsonSchema } from '../domain/json.ts';
import { NameSchema, TaskIdSchema } from '../domain/names.ts';
import { PolicyOverrideSchema, policyOverride } from '../domain/policy.ts';
import type { TaskState } from '../domain/task.ts';
import type { EventLog } from '../log/event-log.ts';
import type { Clock } from '../platform/clock.ts';
import { type BulkKind, stepId, type TargetPage, type TaskRef } from './bulk-kind.ts';
import { commandLetter, type LetterMemories } from './letter-command.ts';
import type { Operation } from './operation.ts';

/** Most tasks that can be named one by one: the operation's record holds them. */
export const MAX_REPLAY_IDS = 1_000;

/** Which dead letters; each condition narrows. Instants are ms since 1970, from inclusive, to exclusive. */
export const LetterFilterSchema = z.strictObject({
  type: NameSchema.optional(),
  fingerprint: z.string().optional(),
  reason: DeadLetterReasonSchema.optional(),
  workerVersion: z.string().optional(),
  deadFrom: z.int().optional(),
  deadTo: z.int().optional(),
});

export const ReplayInputSchema = z.strictObject({
  targets: z.union([
    z.strictObject({ ids: z.array(TaskIdSchema).min(1).max(MAX_REPLAY_IDS) }),
    z.strictObject({ filter: LetterFilterSchema }),
  ]),
  note: z.string().max(1_000).optional(),
  /** Takes the place of each task's own. */
  payload: JsonSchema.optional(),
  /** Changes these parts of each task's own. */
  policy: PolicyOverrideSchema.optional(),
});
export type ReplayInput = z.infer<typeof ReplayInputSchema>;

interface ReplayParts {
  readonly log: Pick<EventLog, 'append' | 'readState' | 'readTask'>;
  readonly clock: Clock;
  /** The read model of the dead letters, in the order of their deaths. */
  readonly letters: LetterMemories & {
    deadLettersBetween(
      filter: z.infer<typeof LetterFilterSchema> & {
        readonly tenant: string | undefined;
        readonly state: 'open';
      },
      stretch: { readonly after: number; readonly upTo: number; readonly limit: number },
    ): Promise<readonly { readonly id: string; readonly tenant: string; readonly seq: number }[]>;
    waitFor(seq: number, timeoutMs: number): Promise<void>;
  };
}

export const REPLAY_LETTERS = 'replay';
const WAIT_MS = 5_000;
/** Refusals that say that there is nothing to replay: it is under way again, or was discarded. */
const NOTHING_TO_DO: ReadonlySet<string> = new Set(['transition_illegal', 'task_discarded', 'task_missing']);

/**
 * Replays what died before the operation began: `replayed`, `skipped` (somebody else was faster, it was discarded, or it
 * has died again since), `failed`.
 */
export const replayLetters = ({ log, clock, letters }: ReplayParts): BulkKind => ({
  kind: REPLAY_LETTERS,
  async page(operation, { cursor, limit }) {
    const { targets } = inputOf(operation);
    if ('ids' in targets) return namedPage(operation, targets.ids, { cursor, limit });
    if (cursor === null) await letters.waitFor(operation.asOf, WAIT_MS);
    const found = await letters.deadLettersBetween(
      { ...targets.filter, tenant: operation.tenant ?? undefined, state: 'open' },
      { after: Number(cursor ?? 0), upTo: operation.asOf, limit },
    );
    const last = found.at(-1);
    return {
      targets: found.map(({ id, tenant }) => ({ tenant, taskId: id })),
      nextCursor: last === undefined || found.length < limit ? null : String(last.seq),
    };
  },
  async act(operation, target) {
    const eventId = stepId(operation, target);
    const { note, payload, policy } = inputOf(operation);
    try {
      const result = await commandLetter({ log, query: letters }, target, (state) => {
        if (state !== undefined && diedSince(operation, state)) throw new DiedSince();
        return {
          kind: 'replay',
          eventId,
          at: clock.now(),
          actor: operation.actor,
          note,
          payload,
          ...(policy === undefined
            ? {}
            : { policy: policyOverride({ ...state?.facts.policy, ...policy }) ?? {} }),
        };
      });
      if (result.ok) return 'replayed';
      if (!NOTHING_TO_DO.has(result.error.code)) throw result.error;
    } catch (error) {
      if (!(error instanceof DiedSince)) throw error;
    }
    const history = await log.readTask(target.tenant, target.taskId);
    return history.some(({ event }) => event.id === eventId) ? 'replayed' : 'skipped';
  },
});

class DiedSince extends Error {
  override readonly name = 'DiedSince';
}

/** A page may be done twice, and by then a task may have failed anew: that death is not this operation's. */
const diedSince = ({ asOf }: Operation, { seq, status }: TaskState): boolean =>
  (status === 'DEAD_LETTER' || status === 'CANCELLED') && seq > asOf;

function namedPage(
  { tenant }: Operation,
  ids: readonly string[],
  { cursor, limit }: { cursor: string | null; limit: number },
): TargetPage {
  if (tenant === null)
    throw new TaskledgerError('request_invalid', { reason: 'Tasks are named without a tenant' });
  const from = Number(cursor ?? 0);
  const to = Math.min(ids.length, from + limit);
  const targets: TaskRef[] = ids.slice(from, to).map((taskId) => ({ tenant, taskId }));
  return { targets, nextCursor: to === ids.length ? null : String(to) };
}

/** What a replay was begun with. */
export const inputOf = ({ input }: Pick<Operation, 'input'>): ReplayInput => ReplayInputSchema.parse(input);
