import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { TaskledgerError } from '../../domain/errors.ts';
import { NameSchema } from '../../domain/names.ts';
import type { PauseScope } from '../../registry/controls.ts';
import type { KeyIdentity } from '../../registry/keys.ts';
import { isOperator, readableTenant, requireOperator } from '../auth.ts';
import { checkStorable } from '../checked-body.ts';
import { instantOf } from '../instants.ts';
import type { HttpParts } from '../parts.ts';
import { pausesInSight, pauseView } from '../pauses.ts';
import { addRoute, parse } from '../route.ts';
import { PauseViewSchema } from '../schemas.ts';

const PauseBody = z.strictObject({
  reason: z.string().trim().min(1).max(500),
  until: z
    .union([z.int(), z.string()])
    .optional()
    .describe('Ends by itself then: ISO 8601 with a zone, or ms since 1970'),
});
const Resumed = z.object({ resumed: z.boolean().describe('False when nothing was paused') });
const tenantParameter = {
  tenant: NameSchema.optional().describe("For operators' keys: only this tenant's tasks of the type"),
};
const WRITE_ERRORS = ['name_invalid', 'tenant_forbidden', 'tenant_unknown', 'log_unavailable'] as const;
const OPERATOR_ERRORS = ['name_invalid', 'operator_only', 'tenant_unknown', 'log_unavailable'] as const;

/**
 * A pause stops the queueing of tasks; what is QUEUED or runs goes on. An operator pauses a type or a tenant for all; the
 * admin of a tenant pauses its own part of a type.
 */
export function pauseRoutes(app: FastifyInstance, parts: HttpParts): void {
  listPauses(app, parts);
  pauseType(app, parts);
  resumeType(app, parts);
  pauseTenant(app, parts);
  resumeTenant(app, parts);
}

function listPauses(app: FastifyInstance, { registry, clock }: HttpParts): void {
  addRoute(app, {
    method: 'GET',
    url: '/v1/pauses',
    scope: 'read',
    tag: 'queues',
    summary: 'List what is paused, by whom, why and until when',
    responses: { 200: z.object({ pauses: z.array(PauseViewSchema) }) },
    errors: [],
    handler: async ({ identity }) => ({
      pauses: pausesInSight(registry, isOperator(identity) ? undefined : identity.tenant, clock.now()).map(
        pauseView,
      ),
    }),
  });
}

function pauseType(app: FastifyInstance, parts: HttpParts): void {
  const { registry } = parts;
  addRoute(app, {
    method: 'POST',
    url: '/v1/queues/:type/pause',
    scope: 'admin',
    tag: 'queues',
    summary: 'Pause a type: for all tenants, or for one',
    description:
      "An operator's key pauses the type for everybody, or for the tenant it names; the key of a tenant pauses its own tasks of the type. Takes the place of an earlier pause of the same scope.",
    params: z.strictObject({ type: NameSchema }),
    query: z.strictObject(tenantParameter),
    body: PauseBody,
    responses: { 200: PauseViewSchema },
    errors: [...WRITE_ERRORS, 'run_at_invalid'],
    handler: ({ identity, params: { type }, query: { tenant }, body }) =>
      pause(parts, {
        identity,
        scope: { type, tenant: readableTenant(identity, tenant, registry.tenants) },
        body,
      }),
  });
}

function resumeType(app: FastifyInstance, parts: HttpParts): void {
  const { registry } = parts;
  addRoute(app, {
    method: 'POST',
    url: '/v1/queues/:type/resume',
    scope: 'admin',
    tag: 'queues',
    summary: 'End the pause of a type',
    params: z.strictObject({ type: NameSchema }),
    query: z.strictObject(tenantParameter),
    responses: { 200: Resumed },
    errors: WRITE_ERRORS,
    handler: ({ identity, params: { type }, query: { tenant } }) =>
      resume(parts, {
        identity,
        scope: { type, tenant: readableTenant(identity, tenant, registry.tenants) },
      }),
  });
}

function pauseTenant(app: FastifyInstance, parts: HttpParts): void {
  const { registry } = parts;
  addRoute(app, {
    method: 'POST',
    url: '/v1/tenants/:tenant/pause',
    scope: 'admin',
    tag: 'tenants',
    summary: "Pause all types of a tenant (operators' keys)",
    params: z.strictObject({ tenant: NameSchema }),
    body: PauseBody,
    responses: { 200: PauseViewSchema },
    errors: [...OPERATOR_ERRORS, 'run_at_invalid'],
    async handler({ identity, params: { tenant }, body }) {
      requireOperator(identity);
      const scope = { tenant: readableTenant(identity, tenant, registry.tenants) };
      return pause(parts, { identity, scope, body });
    },
  });
}

function resumeTenant(app: FastifyInstance, parts: HttpParts): void {
  const { registry } = parts;
  addRoute(app, {
    method: 'POST',
    url: '/v1/tenants/:tenant/resume',
    scope: 'admin',
    tag: 'tenants',
    summary: "End the pause of a tenant (operators' keys)",
    params: z.strictObject({ tenant: NameSchema }),
    responses: { 200: Resumed },
    errors: OPERATOR_ERRORS,
    async handler({ identity, params: { tenant } }) {
      requireOperator(identity);
      const scope = { tenant: readableTenant(identity, tenant, registry.tenants) };
      return resume(parts, { identity, scope });
    },
  });
}

interface Asked {
  readonly identity: KeyIdentity;
  readonly scope: PauseScope;
}

async function pause(
  { registry, clock, logger }: HttpParts,
  { identity, scope, body }: Asked & { readonly body: unknown },
) {
  const { reason, until: untilText } = parse(PauseBody, body ?? {});
  checkStorable(reason, 'reason');
  const until = instantOf('until', untilText);
  if (until !== undefined && until <= clock.now())
    throw new TaskledgerError('request_invalid', { field: 'until', reason: 'until has passed already' });
  const stored = await registry.pauses.put(scope, {
    reason,
    ...(until === undefined ? {} : { until: new Date(until).toISOString() }),
    actor: `key:${identity.id}`,
    at: new Date(clock.now()).toISOString(),
  });
  logger.info({ by: identity.id, ...scope, reason, until: stored.until }, 'paused');
  return pauseView(stored);
}

async function resume({ registry, logger }: HttpParts, { identity, scope }: Asked) {
  const resumed = await registry.pauses.remove(scope);
  if (resumed) logger.info({ by: identity.id, ...scope }, 'resumed');
  return { resumed };
}
