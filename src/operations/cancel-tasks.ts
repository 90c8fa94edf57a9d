import { z } from 'zod';
import { StatusSchema } from '../domain/events.ts';
import { NameSchema } from '../domain/names.ts';
import type { EventLog } from '../log/event-log.ts';
import { execute } from '../log/handle.ts';
import type { Clock } from '../platform/clock.ts';
import { type BulkKind, stepId } from './bulk-kind.ts';
import type { Operation } from './operation.ts';

/** Statuses that can still be cancelled. */
export const CANCELLABLE = [
  'INGESTED',
  'QUEUED',
  'CLAIMED',
  'PROCESSING',
  'FAILED',
  'RETRY_CLAIMED',
  'REPLAYED',
] as const;

export const CancelInputSchema = z.strictObject({
  filter: z.strictObject({
    type: NameSchema.optional(),
    status: z.array(StatusSchema.extract(CANCELLABLE)).min(1).optional(),
    /** Ms since 1970; inclusive. */
    submittedFrom: z.int().optional(),
    /** Exclusive. */
    submittedTo: z.int().optional(),
  }),
  reason: z.string().max(1_000),
});
export type CancelInput = z.infer<typeof CancelInputSchema>;

export interface FoundTasks {
  readonly value: {
    readonly items: readonly { readonly id: string; readonly tenant: string }[];
    readonly nextCursor: string | null;
  };
}

interface CancelParts {
  readonly log: Pick<EventLog, 'append' | 'readState' | 'readTask'>;
  readonly clock: Clock;
  /** The tasks read model, newest first. */
  readonly tasks: {
    tasks(
      filter: CancelInput['filter'] & {
        readonly tenant: string | undefined;
        readonly submittedUpToSeq: number;
      },
      page: { readonly limit: number; readonly cursor: string | undefined },
    ): Promise<FoundTasks>;
    waitFor(seq: number, timeoutMs: number): Promise<void>;
  };
}

export const CANCEL_TASKS = 'cancellation';
const WAIT_MS = 5_000;
/** Refusals that say that there is nothing left to cancel. */
const ENDED: ReadonlySet<string> = new Set(['task_terminal', 'task_missing', 'cancel_pending']);

/**
 * Cancels what a filter finds: `cancelled` (it waited), `requested` (it runs; its worker ends it), `skipped` (it has ended
 * meanwhile, or somebody else has asked), `failed`.
 */
export const cancelTasks = ({ log, clock, tasks }: CancelParts): BulkKind => ({
  kind: CANCEL_TASKS,
  async page(operation, { cursor, limit }) {
    if (cursor === null) await tasks.waitFor(operation.asOf, WAIT_MS);
    const { value } = await tasks.tasks(filterOf(operation), { limit, cursor: cursor ?? undefined });
    return {
      targets: value.items.map(({ id, tenant }) => ({ tenant, taskId: id })),
      nextCursor: value.nextCursor,
    };
  },
  async act(operation, target) {
    const eventId = stepId(operation, target);
    const { reason } = inputOf(operation);
    const { actor } = operation;
    const result = await execute(log, target, () => ({
      kind: 'request_cancel',
      eventId,
      at: clock.now(),
      actor,
      reason,
    }));
    if (result.ok) return outcomeOf(result.value.event.kind);
    if (!ENDED.has(result.error.code)) throw result.error;
    const history = await log.readTask(target.tenant, target.taskId);
    const own = history.find(({ event }) => event.id === eventId);
    return own === undefined ? 'skipped' : outcomeOf(own.event.kind);
  },
});

const outcomeOf = (kind: string): string => (kind === 'CANCELLED' ? 'cancelled' : 'requested');
const inputOf = ({ input }: Operation): CancelInput => CancelInputSchema.parse(input);

const filterOf = (operation: Operation) => {
  const { filter } = inputOf(operation);
  return {
    ...filter,
    status: filter.status ?? [...CANCELLABLE],
    tenant: operation.tenant ?? undefined,
    submittedUpToSeq: operation.asOf,
  };
};
