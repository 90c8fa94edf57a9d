import type { NatsConnection } from '@nats-io/transport-node';
import type { Names } from '../log/subjects.ts';
import type { Logger } from '../observe/log.ts';
import { type Service, serviceGroup } from '../platform/service.ts';
import { PauseSchema, type Pauses, pausesOver } from './controls.ts';
import { type ApiKeys, createApiKeys, KeyRecordSchema } from './keys.ts';
import { createMirror, type Mirror } from './mirror.ts';
import { type Tenant, TenantSchema } from './tenants.ts';
import { type TypeSettings, TypeSettingsSchema } from './type-settings.ts';

/** Durable settings. Every read is answered from memory: no request waits for NATS, none needs Postgres. */
export interface Registry extends DispatchSettings {
  readonly keys: ApiKeys;
}

/** What the dispatcher decides by. */
export interface DispatchSettings extends Service {
  readonly tenants: Settings<Tenant>;
  readonly types: Settings<TypeSettings>;
  readonly pauses: Pauses;
}

/** Settings by name. `put` validates, stores and answers what it stored; it throws a ZodError or `log_unavailable`. */
export interface Settings<T> {
  get(name: string): T | undefined;
  list(): T[];
  put(settings: T): Promise<T>;
  /** Puts what `build` makes of the settings, and calls it again when somebody else was faster: nobody's change is lost. */
  change(name: string, build: (current: T | undefined) => T): Promise<T>;
  /** Calls back for every change from now on, whoever made it; `undefined` is for settings that are gone. */
  onChange(listener: (name: string, settings: T | undefined) => void): void;
}

interface RegistryOptions {
  readonly nc: NatsConnection;
  readonly names: Pick<Names, 'buckets'>;
  readonly logger: Logger;
}

/** The buckets must exist (ensureStreams makes them). Nothing is known before `start()` has resolved. */
export function openRegistry({ nc, names, logger }: RegistryOptions): Registry {
  const keys = createMirror({
    nc,
    logger,
    bucket: names.buckets.keys,
    parse: (value) => KeyRecordSchema.parse(value),
  });
  const settings = mirrorDispatchSettings({ nc, names, logger });
  return { ...settings, ...serviceGroup('registry', [settings, keys]), keys: createApiKeys(keys) };
}

/** Everything but the keys. */
export function mirrorDispatchSettings({ nc, names, logger }: RegistryOptions): DispatchSettings {
  const pauses = createMirror({
    nc,
    logger,
    bucket: names.buckets.controls,
    parse: (value) => PauseSchema.parse(value),
  });
  const settings = mirrorSubmissionSettings({ nc, names, logger });
  return { ...settings, ...serviceGroup('settings', [settings, pauses]), pauses: pausesOver(pauses) };
}

/** What submission is decided by. */
export interface SubmissionSettings extends Service {
  readonly tenants: Settings<Tenant>;
  readonly types: Settings<TypeSettings>;
}

/** The settings of tenants and types alone, for parts that need nothing else. */
export function mirrorSubmissionSettings({ nc, names, logger }: RegistryOptions): SubmissionSettings {
  const { buckets } = names;
  const tenants = createMirror({ nc, logger, bucket: buckets.tenants, parse: parseTenant });
  const types = createMirror({ nc, logger, bucket: buckets.types, parse: parseType });
  return {
    ...serviceGroup('submission settings', [tenants, types]),
    tenants: settingsOver(tenants, ({ name }) => name, parseTenant),
    types: settingsOver(types, ({ type }) => type, parseType),
  };
}

const parseTenant = (value: unknown): Tenant => TenantSchema.parse(value);
const parseType = (value: unknown): TypeSettings => TypeSettingsSchema.parse(value);

const settingsOver = <T>(
  mirror: Mirror<T>,
  keyOf: (value: T) => string,
  parse: (value: T) => T,
): Settings<T> => ({
  get: (name) => mirror.get(name),
  list: () => mirror.values().sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)),
  onChange: (listener) => mirror.onChange(listener),
  async put(value) {
    const valid = parse(value);
    await mirror.put(keyOf(valid), valid);
    return valid;
  },
  async change(name, build) {
    const changed = await mirror.change(name, (current) => parse(build(current)));
    if (changed === undefined) throw new Error('settings are changed, not removed');
    return changed;
  },
});
