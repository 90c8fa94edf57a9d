import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { TaskledgerError } from '../../domain/errors.ts';
import { NameSchema } from '../../domain/names.ts';
import { ALL_TENANTS, SCOPES } from '../../registry/keys.ts';
import { isOperator, readableTenant, requireOperator } from '../auth.ts';
import { checkedBody } from '../checked-body.ts';
import type { HttpParts } from '../parts.ts';
import { addRoute } from '../route.ts';

const KeyBody = z.strictObject({
  tenant: z.union([NameSchema, z.literal(ALL_TENANTS)]).optional(),
  scopes: z.array(z.enum(SCOPES)).min(1),
  name: z.string().min(1).max(200),
});
const KeySchema = z.object({
  id: z.string(),
  tenant: z.string(),
  scopes: z.array(z.enum(SCOPES)),
  name: z.string(),
  createdAt: z.iso.datetime(),
  revokedAt: z.iso.datetime().nullable(),
});

/** Keys: the operators' business, and that of a tenant's own admin. */
export function keyRoutes(app: FastifyInstance, { registry, logger }: HttpParts): void {
  addRoute(app, {
    method: 'GET',
    url: '/v1/keys',
    scope: 'admin',
    tag: 'keys',
    summary: 'List API keys, without their secrets',
    query: z.strictObject({ tenant: NameSchema.optional() }),
    responses: { 200: z.object({ keys: z.array(KeySchema) }) },
    errors: ['tenant_forbidden', 'tenant_unknown'],
    handler: async ({ identity, query: { tenant } }) => ({
      keys: registry.keys.list(readableTenant(identity, tenant, registry.tenants)),
    }),
  });

  addRoute(app, {
    method: 'POST',
    url: '/v1/keys',
    scope: 'admin',
    tag: 'keys',
    summary: 'Create an API key; its text is shown this once',
    body: KeyBody,
    responses: { 201: z.object({ id: z.string(), key: z.string() }) },
    errors: ['tenant_forbidden', 'operator_only', 'tenant_unknown', 'log_unavailable'],
    async handler({ identity, body, reply }) {
      const { tenant: wanted, scopes, name } = checkedBody(KeyBody, body);
      const tenant = wanted ?? identity.tenant;
      if (tenant === ALL_TENANTS) requireOperator(identity);
      else readableTenant(identity, tenant, registry.tenants);
      const made = await registry.keys.create({ tenant, scopes, name });
      logger.info({ by: identity.id, keyId: made.id, tenant, scopes }, 'API key created');
      return reply.code(201).send(made);
    },
  });

  addRoute(app, {
    method: 'DELETE',
    url: '/v1/keys/:id',
    scope: 'admin',
    tag: 'keys',
    summary: 'Revoke an API key',
    params: z.strictObject({ id: z.string().regex(/^[0-9a-f]{16}$/) }),
    responses: { 204: z.null() },
    errors: ['key_not_found', 'log_unavailable'],
    async handler({ identity, params: { id }, reply }) {
      const mine = registry.keys.list(isOperator(identity) ? undefined : identity.tenant);
      if (!mine.some((key) => key.id === id)) throw new TaskledgerError('key_not_found', { keyId: id });
      await registry.keys.revoke(id);
      logger.info({ by: identity.id, keyId: id }, 'API key revoked');
      return reply.code(204).send();
    },
  });
}
