import { z } from 'zod';
import { TaskledgerError } from '../domain/errors.ts';
import { DeadLetterReasonSchema } from '../domain/events.ts';
import type { Json } from '../domain/json.ts';
import { NameSchema, TaskIdSchema } from '../domain/names.ts';
import { PolicyOverrideSchema } from '../domain/policy.ts';
import { checkJson } from '../intake/json-check.ts';
import { MAX_REPLAY_IDS, type ReplayInput } from '../operations/replay-letters.ts';
import { checkStorable } from './checked-body.ts';
import { instantOf, instantParameter } from './instants.ts';
import { parse } from './route.ts';
import { FingerprintSchema } from './schemas-dead-letters.ts';

/** An edited payload is kept in the operation's record and in the event of every task. */
export const MAX_EDITED_BYTES = 131_072;
const BODY_DEPTH = 8;

/** Whose replays: a tenant's key may leave it out. */
export const replayTenant = {
  tenant: NameSchema.optional().describe("For operators' keys; all tenants when absent"),
};

export const ReplayBody = z.strictObject({
  ...replayTenant,
  ids: z
    .array(TaskIdSchema)
    .min(1)
    .max(MAX_REPLAY_IDS)
    .optional()
    .describe('Of one tenant; cancelled tasks too'),
  filter: z
    .strictObject({
      type: NameSchema.optional(),
      fingerprint: FingerprintSchema.optional().describe('A group of GET /v1/dead-letters/groups'),
      reason: DeadLetterReasonSchema.optional(),
      workerVersion: z.string().min(1).max(100).optional(),
      deadFrom: instantParameter,
      deadTo: instantParameter,
    })
    .optional()
    .describe('Instead of ids: open dead letters; {} for all'),
  dryRun: z.boolean().default(false),
  ratePerSecond: z.number().positive().max(100_000).optional().describe('As fast as it goes when absent'),
  payload: z.unknown().optional().describe("Takes the place of each task's own"),
  policy: PolicyOverrideSchema.optional().describe("Changes these parts of each task's own"),
  note: z.string().min(1).max(1_000).optional().describe('Kept in the history of each task'),
});
type ReplayRequest = z.infer<typeof ReplayBody>;

/** Throws what is wrong with the body of a request for a replay. */
export function replayRequestOf(
  body: unknown,
  { maxPayloadDepth }: { readonly maxPayloadDepth: number },
): ReplayRequest {
  const given = parse(ReplayBody, body ?? {});
  const limits = { maxBytes: MAX_EDITED_BYTES, maxDepth: Math.max(BODY_DEPTH, maxPayloadDepth) };
  const unfit = checkJson(body ?? null, 'body', limits);
  if (unfit !== undefined) throw unfit.error;
  if (given.note !== undefined) checkStorable(given.note, 'note');
  if ((given.ids === undefined) === (given.filter === undefined))
    throw new TaskledgerError('request_invalid', {
      field: 'filter',
      reason: 'Give either ids or a filter ({} for all open dead letters)',
    });
  return given;
}

/** What the operation works on. Throws `run_at_invalid`. */
export function replayInput({ ids, filter, note, payload, policy }: ReplayRequest): ReplayInput {
  const instants = {
    deadFrom: instantOf('filter.deadFrom', filter?.deadFrom),
    deadTo: instantOf('filter.deadTo', filter?.deadTo),
  };
  const input = {
    targets: ids === undefined ? { filter: { ...filter, ...instants } } : { ids },
    note,
    payload: payload as Json | undefined,
    policy,
  };
  // What is undefined is no JSON.
  return JSON.parse(JSON.stringify(input)) as ReplayInput;
}
