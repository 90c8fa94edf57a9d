import { randomUUID } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { TaskledgerError } from '../../domain/errors.ts';
import { DeadLetterReasonSchema, StatusSchema } from '../../domain/events.ts';
import { NameSchema, TaskIdSchema } from '../../domain/names.ts';
import { commandLetter } from '../../operations/letter-command.ts';
import { LETTER_STATES } from '../../query/dead-letters.ts';
import { actorOf, readableTenant, tenantParameter, writableTenant } from '../auth.ts';
import { checkStorable } from '../checked-body.ts';
import { instantOf, instantParameter } from '../instants.ts';
import type { HttpParts } from '../parts.ts';
import { pageParameters, READ_ERRORS, read, waitParameter } from '../reading.ts';
import { addRoute, parse } from '../route.ts';
import { Position } from '../schemas.ts';
import { FingerprintSchema, GroupSchema, LetterSchema } from '../schemas-dead-letters.ts';

const LetterParams = z.strictObject({ id: TaskIdSchema });
const nextCursor = z.string().nullable();

const DiscardBody = z.strictObject({ reason: z.string().min(1).max(1_000) });

export function deadLetterRoutes(app: FastifyInstance, parts: HttpParts): void {
  listDeadLetters(app, parts);
  listGroups(app, parts);
  readDeadLetter(app, parts);
  discardDeadLetter(app, parts);
}

function listDeadLetters(app: FastifyInstance, { query, registry }: HttpParts): void {
  addRoute(app, {
    method: 'GET',
    url: '/v1/dead-letters',
    scope: 'read',
    tag: 'dead letters',
    summary: 'List tasks that died, the last death first',
    query: z.strictObject({
      ...tenantParameter,
      type: NameSchema.optional(),
      fingerprint: FingerprintSchema.optional(),
      reason: DeadLetterReasonSchema.optional(),
      state: z.enum(LETTER_STATES).optional().describe('What became of it; all when absent'),
      workerVersion: z.string().min(1).max(100).optional(),
      deadFrom: instantParameter.describe('ISO 8601 with a zone, or ms since 1970; inclusive'),
      deadTo: instantParameter.describe('Exclusive'),
      ...pageParameters(200, 50),
      ...waitParameter,
    }),
    responses: { 200: z.object({ position: Position, deadLetters: z.array(LetterSchema), nextCursor }) },
    errors: [...READ_ERRORS, 'name_invalid', 'cursor_invalid', 'run_at_invalid'],
    async handler({ identity, query: { wait, limit, cursor, deadFrom, deadTo, ...wanted }, reply }) {
      if (wanted.workerVersion !== undefined) checkStorable(wanted.workerVersion, 'workerVersion');
      const filter = {
        ...wanted,
        tenant: readableTenant(identity, wanted.tenant, registry.tenants),
        deadFrom: instantOf('deadFrom', deadFrom),
        deadTo: instantOf('deadTo', deadTo),
      };
      const { position, value } = await read(query, reply, wait, () =>
        query.deadLetters(filter, { limit, cursor }),
      );
      return { position, deadLetters: value.items, nextCursor: value.nextCursor };
    },
  });
}

function listGroups(app: FastifyInstance, { query, registry }: HttpParts): void {
  addRoute(app, {
    method: 'GET',
    url: '/v1/dead-letters/groups',
    scope: 'read',
    tag: 'dead letters',
    summary: 'Group tasks that died by what their errors have in common',
    description: 'The counts are of the tenants that the key may read. The group that died last comes first.',
    query: z.strictObject({
      ...tenantParameter,
      type: NameSchema.optional(),
      fingerprint: FingerprintSchema.optional(),
      all: z.enum(['true', 'false']).default('false').describe('Also groups without an open dead letter'),
      ...pageParameters(200, 50),
      ...waitParameter,
    }),
    responses: { 200: z.object({ position: Position, groups: z.array(GroupSchema), nextCursor }) },
    errors: [...READ_ERRORS, 'name_invalid', 'cursor_invalid'],
    async handler({ identity, query: { wait, limit, cursor, all, ...wanted }, reply }) {
      const filter = {
        ...wanted,
        tenant: readableTenant(identity, wanted.tenant, registry.tenants),
        open: all === 'false',
      };
      const { position, value } = await read(query, reply, wait, () =>
        query.deadLetterGroups(filter, { limit, cursor }),
      );
      return { position, groups: value.items, nextCursor: value.nextCursor };
    },
  });
}

function readDeadLetter(app: FastifyInstance, { query, registry }: HttpParts): void {
  addRoute(app, {
    method: 'GET',
    url: '/v1/dead-letters/:id',
    scope: 'read',
    tag: 'dead letters',
    summary: 'Read why a task died, and what became of it since',
    params: LetterParams,
    query: z.strictObject({ ...tenantParameter, ...waitParameter }),
    responses: { 200: z.object({ position: Position, deadLetter: LetterSchema }) },
    errors: [...READ_ERRORS, 'dead_letter_not_found'],
    async handler({ identity, params: { id }, query: { tenant, wait }, reply }) {
      const of = readableTenant(identity, tenant, registry.tenants);
      const { position, value } = await read(query, reply, wait, () => query.deadLetter(of, id));
      if (value === undefined) throw new TaskledgerError('dead_letter_not_found', { taskId: id });
      return { position, deadLetter: value };
    },
  });
}

function discardDeadLetter(app: FastifyInstance, { query, registry, log, clock }: HttpParts): void {
  addRoute(app, {
    method: 'POST',
    url: '/v1/dead-letters/:id/discard',
    scope: 'submit',
    tag: 'dead letters',
    summary: 'Give a dead letter up for good',
    description:
      'An event of the task, with the reason and the actor. It stays in the list, and is never replayed.',
    params: LetterParams,
    query: z.strictObject(tenantParameter),
    body: DiscardBody,
    responses: { 200: z.object({ id: TaskIdSchema, status: StatusSchema, seq: z.int() }) },
    errors: [
      'tenant_forbidden',
      'tenant_unknown',
      'dead_letter_not_found',
      'transition_illegal',
      'task_discarded',
      'append_conflict',
      'log_unavailable',
      'read_model_unavailable',
    ],
    async handler({ identity, params: { id: taskId }, query: { tenant }, body, reply }) {
      const of = writableTenant(identity, tenant, registry.tenants);
      const { reason } = parse(DiscardBody, body ?? {});
      checkStorable(reason, 'reason');
      const result = await commandLetter({ log, query }, { tenant: of, taskId }, () => ({
        kind: 'discard',
        eventId: randomUUID(),
        at: clock.now(),
        actor: actorOf(identity),
        reason,
      }));
      if (!result.ok)
        throw result.error.code === 'task_missing'
          ? new TaskledgerError('dead_letter_not_found', { taskId })
          : result.error;
      const { seq, state } = result.value;
      reply.header('taskledger-position', seq);
      return { id: taskId, status: state.status, seq };
    },
  });
}
