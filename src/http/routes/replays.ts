import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { TaskIdSchema } from '../../domain/names.ts';
import { WISHES, type Wish } from '../../operations/operation.ts';
import { REPLAY_LETTERS, type ReplayInput } from '../../operations/replay-letters.ts';
import type { LetterFilter } from '../../query/dead-letters.ts';
import type { Query } from '../../query/query.ts';
import { actorOf, readableTenant, writableTenant } from '../auth.ts';
import { operationInSight } from '../operation-view.ts';
import type { HttpParts } from '../parts.ts';
import {
  MAX_EDITED_BYTES,
  ReplayBody,
  replayInput,
  replayRequestOf,
  replayTenant,
} from '../replay-request.ts';
import { MOST_COUNTED, ReplaySchema, replayView } from '../replay-view.ts';
import { addRoute } from '../route.ts';
import { LetterSchema } from '../schemas-dead-letters.ts';

/** A dry run shows so many. */
const SAMPLE = 10;

const ReplayParams = z.strictObject({ id: TaskIdSchema });
const DryRunSchema = z.object({
  dryRun: z.literal(true),
  count: z.int().describe(`Counted up to ${MOST_COUNTED}`),
  sample: z.array(LetterSchema),
});

/** A replay goes on by itself once it is begun; these begin it, show it and hold it up. */
export function replayRoutes(app: FastifyInstance, parts: HttpParts): void {
  beginReplay(app, parts);
  listReplays(app, parts);
  readReplay(app, parts);
  for (const wish of WISHES) controlReplay(app, parts, wish);
}

function beginReplay(app: FastifyInstance, { query, registry, operations, log, config }: HttpParts): void {
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
      const wanted = replayRequestOf(body, config);
      const { dryRun, ratePerSecond } = wanted;
      // Tasks are named within one tenant; a filter may go over all that the key may read.
      const within = wanted.ids === undefined ? readableTenant : writableTenant;
      const tenant = within(identity, wanted.tenant, registry.tenants);
      const input = replayInput(wanted);
      if (dryRun) return reply.code(200).send({ dryRun, ...(await lookedAt(query, tenant, input)) });
      // Whoever dies from now on is not meant.
      const { lastSeq: asOf } = await log.bounds();
      const operation = await operations.begin({
        kind: REPLAY_LETTERS,
        tenant: tenant ?? null,
        input,
        actor: actorOf(identity),
        ratePerSecond,
        asOf,
        expected: await expectedOf(query, tenant, input),
      });
      return reply.code(202).header('location', `/v1/replays/${operation.id}`).send(replayView(operation));
    },
  });
}

function listReplays(app: FastifyInstance, { operations, registry }: HttpParts): void {
  addRoute(app, {
    method: 'GET',
    url: '/v1/replays',
    scope: 'read',
    tag: 'dead letters',
    summary: 'List replays, the newest first',
    description: 'They are kept for 90 days.',
    query: z.strictObject(replayTenant),
    responses: { 200: z.object({ replays: z.array(ReplaySchema) }) },
    errors: ['tenant_forbidden', 'tenant_unknown'],
    async handler({ identity, query: { tenant } }) {
      const of = readableTenant(identity, tenant, registry.tenants);
      return { replays: operations.list({ kind: REPLAY_LETTERS, tenant: of }).map(replayView) };
    },
  });
}

function readReplay(app: FastifyInstance, { operations }: HttpParts): void {
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
}

function controlReplay(app: FastifyInstance, { operations }: HttpParts, wish: Wish): void {
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
}

/** What a dry run answers: how many open dead letters there are, and some of them. */
async function lookedAt(query: Query, tenant: string | undefined, { targets }: ReplayInput) {
  if ('ids' in targets) {
    const letters = await Promise.all(targets.ids.map((id) => query.deadLetter(tenant, id)));
    const open = letters.flatMap(({ value }) => (value?.state === 'open' ? [value] : []));
    return { count: open.length, sample: open.slice(0, SAMPLE) };
  }
  const filter: LetterFilter = { ...targets.filter, tenant, state: 'open' };
  const [count, { value }] = await Promise.all([
    query.countDeadLetters(filter, MOST_COUNTED),
    query.deadLetters(filter, { limit: SAMPLE }),
  ]);
  return { count, sample: value.items };
}

/** Null while the read models are away: the replay waits for them, its beginning does not. */
async function expectedOf(
  query: Query,
  tenant: string | undefined,
  { targets }: ReplayInput,
): Promise<number | null> {
  if ('ids' in targets) return targets.ids.length;
  return query.countDeadLetters({ ...targets.filter, tenant, state: 'open' }, MOST_COUNTED).catch(() => null);
}
