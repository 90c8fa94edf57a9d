import { z } from 'zod';
import { err, ok, type Result } from '../domain/errors.ts';
import { type Actor, ActorSchema } from '../domain/events.ts';
import { type Json, JsonSchema } from '../domain/json.ts';
import { NameSchema, TaskIdSchema } from '../domain/names.ts';

/**
 * Something done to many tasks at once. Legal moves of its state:
 *
 *   running <-> paused;   running -> done   no target is left;   running, paused -> aborted
 *
 * `done` and `aborted` are final. What was done to a task before an abort stays done.
 */
export const OPERATION_STATES = ['running', 'paused', 'done', 'aborted'] as const;
export type OperationState = (typeof OPERATION_STATES)[number];

/** Failures shown; the count has them all. */
export const SHOWN_FAILURES = 20;

export const OperationSchema = z.strictObject({
  /** A UUID: the namespace of the events that it appends. */
  id: TaskIdSchema,
  /** Which BulkKind does the work. */
  kind: z.string().min(1).max(50),
  /** Whose tasks; null for those of all tenants. */
  tenant: NameSchema.nullable(),
  /** The kind's own: filter, reason and the like. */
  input: JsonSchema,
  actor: ActorSchema,
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
  /** Targets a second at most; null for no limit. */
  ratePerSecond: z.number().positive().nullable(),
  /** Log sequence that the read models must reflect before the first target is looked for. */
  asOf: z.int().min(0),
  /** Targets there were at the start, when they were counted. */
  expected: z.int().min(0).nullable(),
  state: z.enum(OPERATION_STATES),
  /** Who paused, resumed or aborted it last. */
  changedBy: ActorSchema.nullable(),
  /** Where the next page of targets begins; null before the first. */
  cursor: z.string().nullable(),
  /**
   * The page at the cursor, stored before anything is done to its targets: what is done may take them out of reach of
   * the search, and whoever does the page again must find and count the same ones.
   */
  page: z
    .strictObject({
      targets: z.array(z.strictObject({ tenant: NameSchema, taskId: z.string().min(1) })),
      next: z.string().nullable(),
    })
    .optional(),
  progress: z.strictObject({
    /** Targets looked at so far. */
    matched: z.int().min(0),
    /** How many of them ended how; the names are the kind's, and `failed`. */
    outcomes: z.record(z.string(), z.int()),
    failures: z.array(z.strictObject({ taskId: z.string(), code: z.string(), message: z.string() })),
  }),
});
export type Operation = z.infer<typeof OperationSchema>;
export type Failure = Operation['progress']['failures'][number];

export interface NewOperation {
  readonly kind: string;
  readonly tenant: string | null;
  /** JSON; checked when it is stored. */
  readonly input: object;
  readonly actor: Actor;
  readonly ratePerSecond?: number | null | undefined;
  readonly asOf: number;
  readonly expected?: number | null | undefined;
}

export const begun = (id: string, wanted: NewOperation, now: number): Operation => ({
  ...wanted,
  input: wanted.input as Json,
  ratePerSecond: wanted.ratePerSecond ?? null,
  expected: wanted.expected ?? null,
  id,
  createdAt: new Date(now).toISOString(),
  updatedAt: new Date(now).toISOString(),
  state: 'running',
  changedBy: null,
  cursor: null,
  progress: { matched: 0, outcomes: {}, failures: [] },
});

/** With the page that is about to be done. One that another runner has stored already stays: that one may have begun. */
export function prepared(
  operation: Operation,
  { from, ...page }: Pick<Page, 'from'> & NonNullable<Operation['page']>,
): Operation {
  if (operation.cursor !== from || operation.page !== undefined || operation.state !== 'running')
    return operation;
  return { ...operation, page };
}

/** What became of one target: an outcome of the kind's, or why it failed. */
export type TargetOutcome = string | Failure;

export interface Page {
  /** The cursor that the page was read from. */
  readonly from: string | null;
  /** Null: it was the last. */
  readonly next: string | null;
  readonly outcomes: readonly TargetOutcome[];
}

/** After one page. A page that another runner has counted already changes nothing. */
export function advanced(operation: Operation, page: Page, now: number): Operation {
  if (operation.cursor !== page.from || hasEnded(operation)) return operation;
  const outcomes = { ...operation.progress.outcomes };
  const failures: Failure[] = [...operation.progress.failures];
  for (const outcome of page.outcomes) {
    const name = typeof outcome === 'string' ? outcome : 'failed';
    outcomes[name] = (outcomes[name] ?? 0) + 1;
    if (typeof outcome !== 'string') failures.push(outcome);
  }
  return {
    ...operation,
    updatedAt: new Date(now).toISOString(),
    state: page.next === null ? 'done' : operation.state,
    cursor: page.next ?? operation.cursor,
    page: undefined,
    progress: {
      matched: operation.progress.matched + page.outcomes.length,
      outcomes,
      failures: failures.slice(-SHOWN_FAILURES),
    },
  };
}

export const WISHES = ['pause', 'resume', 'abort'] as const;
export type Wish = (typeof WISHES)[number];
const AFTER: Readonly<Record<Wish, OperationState>> = {
  pause: 'paused',
  resume: 'running',
  abort: 'aborted',
};

/** Asking for the state that it has is no error. Answers `operation_ended`. */
export function controlled(
  operation: Operation,
  { wish, actor, now }: { wish: Wish; actor: Actor; now: number },
): Result<Operation> {
  const state = AFTER[wish];
  if (operation.state === state) return ok(operation);
  if (hasEnded(operation))
    return err('operation_ended', { operationId: operation.id, state: operation.state });
  return ok({ ...operation, state, changedBy: actor, updatedAt: new Date(now).toISOString() });
}

export const hasEnded = ({ state }: Pick<Operation, 'state'>): boolean =>
  state === 'done' || state === 'aborted';
