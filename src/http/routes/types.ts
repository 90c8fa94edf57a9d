import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { TaskledgerError } from '../../domain/errors.ts';
import { NameSchema } from '../../domain/names.ts';
import { PolicySchema, resolvePolicy } from '../../domain/policy.ts';
import { checkJson } from '../../intake/json-check.ts';
import type { KeyIdentity } from '../../registry/keys.ts';
import { type TypeSettings, TypeSettingsSchema } from '../../registry/type-settings.ts';
import { isOperator } from '../auth.ts';
import type { HttpParts } from '../parts.ts';
import { addRoute, parse } from '../route.ts';

const TypeParams = z.strictObject({ type: NameSchema });
const SettingsBody = TypeSettingsSchema.omit({ type: true });
const TypeSchema = z.object({
  ...TypeSettingsSchema.shape,
  effectivePolicy: PolicySchema.describe('The default policy with the settings applied'),
});
const BODY_LIMITS = { maxBytes: 65_536, maxDepth: 8 };

export function typeRoutes(app: FastifyInstance, { registry, logger }: HttpParts): void {
  addRoute(app, {
    method: 'GET',
    url: '/v1/types',
    scope: 'read',
    tag: 'types',
    summary: 'List the types that have settings',
    responses: { 200: z.object({ types: z.array(TypeSchema) }) },
    errors: [],
    handler: async () => ({ types: registry.types.list().map(view) }),
  });

  addRoute(app, {
    method: 'GET',
    url: '/v1/types/:type',
    scope: 'read',
    tag: 'types',
    summary: "Read a type's settings; a type without any has the defaults",
    params: TypeParams,
    responses: { 200: TypeSchema },
    errors: ['name_invalid'],
    handler: async ({ params: { type } }) => view(registry.types.get(type) ?? { type }),
  });

  addRoute(app, {
    method: 'PUT',
    url: '/v1/types/:type',
    scope: 'admin',
    tag: 'types',
    summary: "Replace a type's settings",
    description:
      "Types are shared by all tenants, so this asks for an operator's key. Tasks keep the policy they were submitted with; limits hold for all at once.",
    params: TypeParams,
    body: SettingsBody,
    responses: { 200: TypeSchema },
    errors: [
      'name_invalid',
      'tenant_forbidden',
      'payload_has_nul',
      'payload_has_invalid_unicode',
      'log_unavailable',
    ],
    async handler({ identity, params: { type }, body }) {
      requireOperator(identity);
      const unfit = checkJson(body ?? null, 'body', BODY_LIMITS);
      if (unfit !== undefined) throw unfit.error;
      const settings = parse(SettingsBody, body);
      logger.info({ by: identity.id, type, settings }, 'type put');
      return view(await registry.types.put({ type, ...settings }));
    },
  });
}

/** Throws `tenant_forbidden` for the key of one tenant. */
export function requireOperator(identity: KeyIdentity): void {
  if (!isOperator(identity)) throw new TaskledgerError('tenant_forbidden', { tenant: '* (all tenants)' });
}

const view = (settings: TypeSettings) => ({ ...settings, effectivePolicy: resolvePolicy(settings.policy) });
