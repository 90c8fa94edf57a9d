import type { FastifyRequest } from 'fastify';
import { TaskledgerError } from '../domain/errors.ts';
import type { Actor } from '../domain/events.ts';
import { NAME_PATTERN, NameSchema } from '../domain/names.ts';
import { ALL_TENANTS, type ApiKeys, hasScope, type KeyIdentity, type Scope } from '../registry/keys.ts';
import type { Registry } from '../registry/registry.ts';

const BEARER = /^Bearer +(\S+)$/i;

/** Whose key a request carries. Throws `key_missing`, `key_invalid` or `scope_missing`. */
export function authenticate(request: FastifyRequest, keys: ApiKeys, scope: Scope): KeyIdentity {
  const header = request.headers.authorization;
  if (header === undefined || header === '') throw new TaskledgerError('key_missing');
  const identity = keys.verify(BEARER.exec(header)?.[1] ?? '');
  if (identity === undefined) throw new TaskledgerError('key_invalid');
  if (!hasScope(identity, scope)) throw new TaskledgerError('scope_missing', { scope });
  return identity;
}

export const isOperator = (identity: KeyIdentity): boolean => identity.tenant === ALL_TENANTS;

/** Throws `operator_only` for the key of one tenant. */
export function requireOperator(identity: KeyIdentity): void {
  if (!isOperator(identity)) throw new TaskledgerError('operator_only', { tenant: identity.tenant });
}

export const actorOf = (identity: KeyIdentity): Actor => ({ kind: 'key', id: identity.id });

/** Of a route that is of one tenant: a tenant's key may leave it out. */
export const tenantParameter = { tenant: NameSchema.optional().describe("For operators' keys") };

/**
 * The tenant that a request may read, or undefined for all of them (an operator who named none).
 * Throws `tenant_forbidden`, or `tenant_unknown` for an operator.
 */
export function readableTenant(
  identity: KeyIdentity,
  wanted: string | undefined,
  tenants: Registry['tenants'],
): string | undefined {
  if (wanted !== undefined && !NAME_PATTERN.test(wanted))
    throw new TaskledgerError('name_invalid', {
      field: 'tenant',
      value: JSON.stringify(wanted.slice(0, 80)),
    });
  if (!isOperator(identity)) {
    if (wanted !== undefined && wanted !== identity.tenant)
      throw new TaskledgerError('tenant_forbidden', { field: 'tenant', tenant: wanted });
    return identity.tenant;
  }
  if (wanted !== undefined && tenants.get(wanted) === undefined)
    throw new TaskledgerError('tenant_unknown', { field: 'tenant', tenant: wanted });
  return wanted;
}

/** The one tenant that a request writes to. Throws as `readableTenant` does, and when an operator names no tenant. */
export function writableTenant(
  identity: KeyIdentity,
  wanted: string | undefined,
  tenants: Registry['tenants'],
): string {
  const tenant = readableTenant(identity, wanted, tenants);
  if (tenant === undefined)
    throw new TaskledgerError('request_invalid', {
      field: 'tenant',
      reason: "An operator's key must name the tenant",
    });
  return tenant;
}
