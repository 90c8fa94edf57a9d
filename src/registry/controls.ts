import { z } from 'zod';
import { isName } from '../domain/names.ts';
import type { Mirror } from './mirror.ts';

/** What a pause stops: a type for everybody, a tenant in every type, or a tenant in one type. At least one of the two. */
export interface PauseScope {
  readonly tenant?: string | undefined;
  readonly type?: string | undefined;
}

/** Stored while it holds; removed when somebody resumes. Running and QUEUED tasks go on: nothing new is queued. */
export const PauseSchema = z.strictObject({
  paused: z.literal(true),
  reason: z.string().min(1).max(500),
  /** Ends by itself at this instant. */
  until: z.iso.datetime().optional(),
  /** Who paused: `key:<id>` or the like. */
  actor: z.string().min(1).max(200),
  at: z.iso.datetime(),
});
export type Pause = z.infer<typeof PauseSchema>;
export type ScopedPause = Pause & PauseScope;

export interface Pauses {
  /** The pause of exactly this scope, also one whose `until` has passed. */
  get(scope: PauseScope): Pause | undefined;
  list(): ScopedPause[];
  /** Stores it in place of an earlier one. Throws a ZodError or `log_unavailable`. */
  put(scope: PauseScope, pause: Omit<Pause, 'paused'>): Promise<ScopedPause>;
  /** False when there was none. */
  remove(scope: PauseScope): Promise<boolean>;
  onChange(listener: (scope: PauseScope, pause: Pause | undefined) => void): void;
}

export const holdsAt = ({ until }: Pause, now: number): boolean =>
  until === undefined || Date.parse(until) > now;

/** `type.<type>`, `tenant.<tenant>` or `tenant-type.<tenant>.<type>`. */
export function pauseKey({ tenant, type }: PauseScope): string {
  for (const name of [tenant, type])
    if (name !== undefined && !isName(name)) throw new TypeError(`not a name: ${String(name)}`);
  if (tenant !== undefined) return type === undefined ? `tenant.${tenant}` : `tenant-type.${tenant}.${type}`;
  if (type !== undefined) return `type.${type}`;
  throw new TypeError('a pause needs a tenant or a type');
}

/** Undefined for a key that `pauseKey` does not make. */
export function pauseScopeOf(key: string): PauseScope | undefined {
  const [kind, first, second, ...more] = key.split('.');
  if (!isName(first) || more.length > 0) return undefined;
  if (kind === 'tenant-type') return isName(second) ? { tenant: first, type: second } : undefined;
  if (second !== undefined) return undefined;
  if (kind === 'tenant') return { tenant: first };
  return kind === 'type' ? { type: first } : undefined;
}

export function pausesOver(mirror: Mirror<Pause>): Pauses {
  return {
    get: (scope) => mirror.get(pauseKey(scope)),
    list: () =>
      mirror
        .entries()
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .flatMap(([key, pause]) => {
          const scope = pauseScopeOf(key);
          return scope === undefined ? [] : [{ ...scope, ...pause }];
        }),
    async put(scope, pause) {
      const valid = PauseSchema.parse({ paused: true, ...pause });
      await mirror.put(pauseKey(scope), valid);
      return { ...scope, ...valid };
    },
    async remove(scope) {
      const key = pauseKey(scope);
      if (mirror.get(key) === undefined) return false;
      await mirror.delete(key);
      return true;
    },
    onChange: (listener) =>
      mirror.onChange((key, pause) => {
        const scope = pauseScopeOf(key);
        if (scope !== undefined) listener(scope, pause);
      }),
  };
}
