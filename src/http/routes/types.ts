import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { NameSchema } from '../../domain/names.ts';
import { PolicySchema, resolvePolicy } from '../../domain/policy.ts';
import { type TypeSettings, TypeSettingsSchema } from '../../registry/type-settings.ts';
import { requireOperator } from '../auth.ts';
import { checkedBody } from '../checked-body.ts';
import type { HttpParts } from '../parts.ts';
import { addRoute } from '../route.ts';
import { merged, PatchSchema, patchOf } from '../settings-body.ts';

const TypeParams = z.strictObject({ type: NameSchema });
const SettingsBody = TypeSettingsSchema.omit({ type: true });
const TypeSchema = z.object({
  ...TypeSettingsSchema.shape,
  effectivePolicy: PolicySchema.describe('The default policy with the settings applied'),
});

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
      'operator_only',
      'payload_has_nul',
      'payload_has_invalid_unicode',
      'log_unavailable',
    ],
    async handler({ identity, params: { type }, body }) {
      requireOperator(identity);
      const settings = checkedBody(SettingsBody, body);
      logger.info({ by: identity.id, type, settings }, 'type put');
      return view(await registry.types.put({ type, ...settings }));
    },
  });

  addRoute(app, {
    method: 'PATCH',
    url: '/v1/types/:type',
    scope: 'admin',
    tag: 'types',
    summary: "Change some of a type's settings; null removes one",
    description:
      'A JSON merge patch (RFC 7396), but that a backoff is replaced as a whole. Two patches at once are both kept.',
    params: TypeParams,
    body: patchOf(SettingsBody),
    responses: { 200: TypeSchema },
    errors: ['name_invalid', 'operator_only', 'log_unavailable'],
    async handler({ identity, params: { type }, body }) {
      requireOperator(identity);
      const patch = checkedBody(PatchSchema, body);
      logger.info({ by: identity.id, type, patch }, 'type patched');
      const changed = await registry.types.change(type, (current) => {
        const { type: _type, ...settings } = current ?? { type };
        return { type, ...checkedBody(SettingsBody, merged(settings, patch)) };
      });
      return view(changed);
    },
  });
}

const view = (settings: TypeSettings) => ({ ...settings, effectivePolicy: resolvePolicy(settings.policy) });
