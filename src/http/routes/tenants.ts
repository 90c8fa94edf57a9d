import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { TaskledgerError } from '../../domain/errors.ts';
import { NameSchema } from '../../domain/names.ts';
import { type Tenant, TenantSchema } from '../../registry/tenants.ts';
import { isOperator, readableTenant, requireOperator } from '../auth.ts';
import { checkedBody } from '../checked-body.ts';
import type { HttpParts } from '../parts.ts';
import { addRoute } from '../route.ts';
import { merged, PatchSchema, patchOf } from '../settings-body.ts';

const TenantBody = TenantSchema.omit({ name: true, createdAt: true });
const TenantParams = z.strictObject({ tenant: NameSchema });

/** Tenants are the operators' business; a tenant may look at its own settings. */
export function tenantRoutes(app: FastifyInstance, { registry, clock, logger }: HttpParts): void {
  addRoute(app, {
    method: 'GET',
    url: '/v1/tenants',
    scope: 'read',
    tag: 'tenants',
    summary: "List the tenants that the key may see: all for an operator's, else its own",
    responses: { 200: z.object({ tenants: z.array(TenantSchema) }) },
    errors: [],
    handler: async ({ identity }) => ({
      tenants: registry.tenants.list().filter(({ name }) => isOperator(identity) || name === identity.tenant),
    }),
  });

  addRoute(app, {
    method: 'GET',
    url: '/v1/tenants/:tenant',
    scope: 'read',
    tag: 'tenants',
    summary: "Read a tenant's settings",
    params: TenantParams,
    responses: { 200: TenantSchema },
    errors: ['name_invalid', 'tenant_forbidden', 'tenant_unknown'],
    async handler({ identity, params: { tenant: name } }) {
      readableTenant(identity, name, registry.tenants);
      return known(name, registry.tenants.get(name));
    },
  });

  addRoute(app, {
    method: 'PUT',
    url: '/v1/tenants/:tenant',
    scope: 'admin',
    tag: 'tenants',
    summary: 'Create a tenant, or replace its settings',
    description:
      'Weights and `limits` are for dispatch: a limited tenant waits without holding anybody else up; limits are exact, also after a failover. ' +
      '`submission` bounds what comes in over HTTP and submitters, all API processes together. Takes effect at once. What the body does not say goes back to the default: PATCH changes only what it names.',
    params: TenantParams,
    body: TenantBody,
    responses: { 200: TenantSchema },
    errors: ['name_invalid', 'operator_only', 'log_unavailable'],
    async handler({ identity, params: { tenant: name }, body }) {
      requireOperator(identity);
      const settings = checkedBody(TenantBody, body);
      const createdAt = registry.tenants.get(name)?.createdAt ?? new Date(clock.now()).toISOString();
      logger.info({ by: identity.id, tenant: name, settings }, 'tenant put');
      return registry.tenants.put({ name, createdAt, ...settings });
    },
  });

  addRoute(app, {
    method: 'PATCH',
    url: '/v1/tenants/:tenant',
    scope: 'admin',
    tag: 'tenants',
    summary: "Change some of a tenant's settings; null removes one",
    description: 'A JSON merge patch (RFC 7396). Two patches at once are both kept.',
    params: TenantParams,
    body: patchOf(TenantBody),
    responses: { 200: TenantSchema },
    errors: ['name_invalid', 'operator_only', 'tenant_unknown', 'log_unavailable'],
    async handler({ identity, params: { tenant: name }, body }) {
      requireOperator(identity);
      const patch = checkedBody(PatchSchema, body);
      logger.info({ by: identity.id, tenant: name, patch }, 'tenant patched');
      return registry.tenants.change(name, (current) => {
        const { createdAt, name: _name, ...settings } = known(name, current);
        return { name, createdAt, ...checkedBody(TenantBody, merged(settings, patch)) };
      });
    },
  });
}

function known(name: string, tenant: Tenant | undefined): Tenant {
  if (tenant === undefined) throw new TaskledgerError('tenant_unknown', { field: 'tenant', tenant: name });
  return tenant;
}
