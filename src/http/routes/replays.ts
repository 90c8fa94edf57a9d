import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { TaskledgerError } from '../../domain/errors.ts';
import { ActorSchema, DeadLetterReasonSchema } from '../../domain/events.ts';
import type { Json } from '../../domain/json.ts';
import { NameSchema, TaskIdSchema } from '../../domain/names.ts';
import { PolicyOverrideSchema } from '../../domain/policy.ts';
import { checkJson } from '../../intake/json-check.ts';
import { OPERATION_STATES, type Operation, WISHES } from '../../operations/operation.ts';
import {
  inputOf,
  MAX_REPLAY_IDS,
  REPLAY_LETTERS,
  type ReplayInput,
} from '../../operations/replay-letters.ts';
import type { LetterFilter } from '../../query/dead-letters.ts';
import { actorOf, readableTenant, writableTenant } from '../auth.ts';
import { checkStorable } from '../checked-body.ts';
import { instantOf, instantParameter } from '../instants.ts';
import { operationInSight } from '../operation-view.ts';
import type { HttpParts } from '../parts.ts';
import { addRoute, parse } from '../route.ts';
import { FingerprintSchema, LetterSchema } from './dead-letters.ts';

/** A dry run shows so many, and counts no further than this. */
const SAMPLE = 10;
const COUNTED = 100_000;
/** An edited payload is kept in the operation's record and in the event of every task. */
const MAX_EDITED_BYTES = 131_072;
const BODY_DEPTH = 8;

const ReplayParams = z.strictObject({ id: TaskIdSchema });
const tenantScope = {
  tenant: NameSchema.optional().describe("For operators' keys; all tenants when absent"),
};

const ReplayBody = z.strictObject({
  ...tenantScope,
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

const instant = z.iso.datetime();
const ReplaySchema = z.object({
  id: TaskIdSchema,
  tenant: NameSchema.nullable().describe('Null: all tenants'),
  state: z.enum(OPERATION_STATES),
  targets: z.union([
    z.object({ ids: z.array(TaskIdSchema) }),
    z.object({ filter: z.record(z.string(), z.unknown()) }),
  ]),
  note: z.string().nullable(),
  edited: z.array(z.enum(['payload', 'policy'])),
  ratePerSecond: z.number().nullable(),
  expected: z
    .int()
    .nullable()
    .describe(`Found at the start, up to ${COUNTED}; what others settle before its turn is not looked at`),
  progress: z.object({
    matched: z.int().describe('Looked at so far'),
    replayed: z.int(),
    skipped: z.int().describe('Under way again already, discarded, or died again since'),
    failed: z.int(),
    failures: z.array(z.object({ taskId: z.string(), code: z.string(), message: z.string() })),
  }),
  actor: ActorSchema,
  changedBy: ActorSchema.nullable().describe('Who paused, resumed or aborted it last'),
  createdAt: instant,
  updatedAt: instant,
});
const DryRunSchema = z.object({
  dryRun: z.literal(true),
  count: z.int().describe(`Counted up to ${COUNTED}`),
  sample: z.array(LetterSchema),
});

export function replayRoutes(
  app: FastifyInstance,
  { query, registry, operations, log, config }: HttpParts,
): void {
  addRoute(app, {
    method: 'POST',
    url: '/v1/replays',
    scope: 'submit',
    tag: 'dead letters',
    summary: 'Replay dead letters: one, a group, or what a filter finds',
    description:
      'Each task keeps its id and history and starts a new round of attempts. A dry run answers how many there are, and some of them. ' +
      'Otherwise the answer is a replay that goes on by itself, also when this process dies. What dies after its start is left alone.',
    body: ReplayBody,
    bodyLimit: 2 * MAX_EDITED_BYTES,
    responses: { 202: ReplaySchema, 200: DryRunSchema },
    errors: [
      'name_invalid',
      'run_at_invalid',
      'payload_has_nul',
      'payload_has_invalid_unicode',
      'payload_too_large',
      'payload_too_deep',
      'tenant_forbidden',
      'tenant_unknown',
      'read_model_unavailable',
      'log_unavailable',
    ],
    async handler({ identity, body, reply }) {
      const { tenant: wanted, dryRun, ratePerSecond, ...rest } = readBody(body);
      const named = rest.ids !== undefined;
      const tenant = (named ? writableTenant : readableTenant)(identity, wanted, registry.tenants);
      const input = inputFrom(rest);
      if (dryRun) return reply.code(200).send({ dryRun, ...(await lookedAt(tenant, input)) });
      // Whoever dies from now on is not meant.
      const { lastSeq: asOf } = await log.bounds();
      const operation = await operations.begin({
        kind: REPLAY_LETTERS,
        tenant: tenant ?? null,
        input,
        actor: actorOf(identity),
        ratePerSecond,
        asOf,
        expected: await expectedOf(tenant, input),
      });
      return reply.code(202).header('location', `/v1/replays/${operation.id}`).send(replayView(operation));
    },
  });

  addRoute(app, {
    method: 'GET',
    url: '/v1/replays',
    scope: 'read',
    tag: 'dead letters',
    summary: 'List replays, the newest first',
    description: 'They are kept for 90 days.',
    query: z.strictObject(tenantScope),
    responses: { 200: z.object({ replays: z.array(ReplaySchema) }) },
    errors: ['tenant_forbidden', 'tenant_unknown'],
    async handler({ identity, query: { tenant } }) {
      const of = readableTenant(identity, tenant, registry.tenants);
      return { replays: operations.list({ kind: REPLAY_LETTERS, tenant: of }).map(replayView) };
    },
  });

  addRoute(app, {
    method: 'GET',
    url: '/v1/replays/:id',
    scope: 'read',
    tag: 'dead letters',
    summary: 'Read how far a replay has come',
    params: ReplayParams,
    responses: { 200: ReplaySchema },
    errors: ['operation_not_found', 'log_unavailable'],
    handler: async ({ identity, params: { id } }) =>
      replayView(await operationInSight(operations, { id, kind: REPLAY_LETTERS, identity })),
  });

  for (const wish of WISHES)
    addRoute(app, {
      method: 'POST',
      url: `/v1/replays/:id/${wish}`,
      scope: 'submit',
      tag: 'dead letters',
      summary: `${wish[0]?.toUpperCase()}${wish.slice(1)} a replay`,
      ...(wish === 'abort' ? { description: 'What was replayed before stays so.' } : {}),
      params: ReplayParams,
      responses: { 200: ReplaySchema },
      errors: ['operation_not_found', 'operation_ended', 'log_unavailable'],
      async handler({ identity, params: { id } }) {
        await operationInSight(operations, { id, kind: REPLAY_LETTERS, identity });
        return replayView(await operations.control(id, wish, actorOf(identity)));
      },
    });

  function readBody(body: unknown): z.infer<typeof ReplayBody> {
    const given = parse(ReplayBody, body ?? {});
    const limits = { maxBytes: MAX_EDITED_BYTES, maxDepth: Math.max(BODY_DEPTH, config.maxPayloadDepth) };
    const unfit = checkJson((body ?? null) as Json, 'body', limits);
    if (unfit !== undefined) throw unfit.error;
    if (given.note !== undefined) checkStorable(given.note, 'note');
    if ((given.ids === undefined) === (given.filter === undefined))
      throw new TaskledgerError('request_invalid', {
        field: 'filter',
        reason: 'Give either ids or a filter ({} for all open dead letters)',
      });
    return given;
  }

  async function lookedAt(tenant: string | undefined, { targets }: ReplayInput) {
    if ('ids' in targets) {
      const letters = await Promise.all(targets.ids.map((id) => query.deadLetter(tenant, id)));
      const open = letters.flatMap(({ value }) => (value?.state === 'open' ? [value] : []));
      return { count: open.length, sample: open.slice(0, SAMPLE) };
    }
    const filter: LetterFilter = { ...targets.filter, tenant, state: 'open' };
    const [count, { value }] = await Promise.all([
      query.countDeadLetters(filter, COUNTED),
      query.deadLetters(filter, { limit: SAMPLE }),
    ]);
    return { count, sample: value.items };
  }

  /** Null while the read models are away: the replay waits for them, its beginning does not. */
  async function expectedOf(tenant: string | undefined, { targets }: ReplayInput): Promise<number | null> {
    if ('ids' in targets) return targets.ids.length;
    return query.countDeadLetters({ ...targets.filter, tenant, state: 'open' }, COUNTED).catch(() => null);
  }
}

function inputFrom({
  ids,
  filter,
  note,
  payload,
  policy,
}: Omit<z.infer<typeof ReplayBody>, 'tenant' | 'dryRun' | 'ratePerSecond'>): ReplayInput {
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

function replayView(operation: Operation) {
  const { id, tenant, state, ratePerSecond, expected, actor, changedBy, createdAt, updatedAt } = operation;
  const { targets, note, payload, policy } = inputOf(operation);
  const { matched, outcomes, failures } = operation.progress;
  const count = (outcome: string): number => outcomes[outcome] ?? 0;
  return {
    id,
    tenant,
    state,
    targets,
    note: note ?? null,
    edited: [...(payload === undefined ? [] : ['payload']), ...(policy === undefined ? [] : ['policy'])],
    ratePerSecond,
    expected,
    progress: {
      matched,
      replayed: count('replayed'),
      skipped: count('skipped'),
      failed: count('failed'),
      failures,
    },
    actor,
    changedBy,
    createdAt,
    updatedAt,
  };
}
