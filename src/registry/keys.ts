import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { TaskledgerError } from '../domain/errors.ts';
import { isName, NameSchema } from '../domain/names.ts';
import type { Mirror } from './mirror.ts';

export const SCOPES = ['submit', 'read', 'admin'] as const;
export type Scope = (typeof SCOPES)[number];

/** The tenant of an operator's key, which acts for every tenant. */
export const ALL_TENANTS = '*';

/** Who a verified key belongs to. `admin` implies the other scopes. */
export interface KeyIdentity {
  readonly id: string;
  readonly tenant: string;
  readonly scopes: readonly Scope[];
  readonly name: string;
}

/** A key as an operator sees it: never its secret. */
export interface KeyView extends KeyIdentity {
  readonly createdAt: string;
  readonly revokedAt: string | null;
}

export const KeyRecordSchema = z.strictObject({
  id: z.string().regex(/^[0-9a-f]{16}$/),
  tenant: z.union([NameSchema, z.literal(ALL_TENANTS)]),
  scopes: z.array(z.enum(SCOPES)).min(1),
  name: z.string().min(1).max(200),
  /** Hex SHA-256 of the secret. The secret has 256 random bits, so a slow hash would add nothing. */
  secretHash: z.string().regex(/^[0-9a-f]{64}$/),
  createdAt: z.iso.datetime(),
  revokedAt: z.iso.datetime().optional(),
});
export type KeyRecord = z.infer<typeof KeyRecordSchema>;

export interface KeyOwner {
  readonly tenant: string;
  readonly scopes: readonly Scope[];
  readonly name: string;
}

export interface ApiKeys {
  /** Stores a new key and returns its text, which is not kept anywhere. Throws `name_invalid`, `log_unavailable`. */
  create(of: KeyOwner): Promise<{ key: string; id: string }>;
  /** Stores a key whose text an operator has chosen, unless it is stored already. Throws `config_invalid`, `log_unavailable`. */
  install(key: string, of: KeyOwner): Promise<'stored' | 'known' | 'revoked'>;
  /** Undefined for anything but the text of a key that is stored and not revoked. */
  verify(key: string): KeyIdentity | undefined;
  /** Holds at once in this process, and in others when their mirror hears of it. False when no such key exists. */
  revoke(id: string): Promise<boolean>;
  list(tenant?: string): readonly KeyView[];
}

const KEY_TEXT = /^tl_([0-9a-f]{16})_([A-Za-z0-9_-]{43})$/;
const unfit = (reason: string): TaskledgerError =>
  new TaskledgerError('config_invalid', { key: 'TASKLEDGER_OPERATOR_KEY', reason });
const hashOf = (secret: string): Buffer => createHash('sha256').update(secret).digest();

const recordOf = (id: string, secret: string, { tenant, scopes, name }: KeyOwner): KeyRecord =>
  KeyRecordSchema.parse({
    id,
    tenant,
    scopes,
    name,
    secretHash: hashOf(secret).toString('hex'),
    createdAt: new Date().toISOString(),
  });

export function createApiKeys(records: Mirror<KeyRecord>): ApiKeys {
  return {
    async create({ tenant, scopes, name }) {
      if (tenant !== ALL_TENANTS && !isName(tenant))
        throw new TaskledgerError('name_invalid', { field: 'tenant', value: tenant });
      const id = randomBytes(8).toString('hex');
      const secret = randomBytes(32).toString('base64url');
      await records.put(id, recordOf(id, secret, { tenant, scopes, name }));
      return { key: `tl_${id}_${secret}`, id };
    },
    async install(key, of) {
      const [, id, secret] = KEY_TEXT.exec(key) ?? [];
      if (id === undefined || secret === undefined) throw unfit('it is not of the form tl_<id>_<secret>');
      const known = records.get(id);
      const record = await records.change(id, (current) => current ?? recordOf(id, secret, of));
      if (record?.secretHash !== hashOf(secret).toString('hex'))
        throw unfit(`key ${id} exists with another secret`);
      if (record.revokedAt !== undefined) return 'revoked';
      return known === undefined ? 'stored' : 'known';
    },
    verify(key) {
      const [, id, secret] = KEY_TEXT.exec(key) ?? [];
      if (id === undefined || secret === undefined) return undefined;
      const record = records.get(id);
      if (record === undefined || record.revokedAt !== undefined) return undefined;
      if (!timingSafeEqual(hashOf(secret), Buffer.from(record.secretHash, 'hex'))) return undefined;
      return { id, tenant: record.tenant, scopes: record.scopes, name: record.name };
    },
    async revoke(id) {
      const record = records.get(id);
      if (record === undefined) return false;
      if (record.revokedAt === undefined)
        await records.put(id, { ...record, revokedAt: new Date().toISOString() });
      return true;
    },
    list: (tenant) =>
      records
        .values()
        .filter((record) => tenant === undefined || record.tenant === tenant)
        .map(({ id, tenant: of, scopes, name, createdAt, revokedAt }) => ({
          id,
          tenant: of,
          scopes,
          name,
          createdAt,
          revokedAt: revokedAt ?? null,
        })),
  };
}

export const hasScope = (identity: KeyIdentity, scope: Scope): boolean =>
  identity.scopes.includes(scope) || identity.scopes.includes('admin');
