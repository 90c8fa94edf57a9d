import { holdsAt, type ScopedPause } from '../registry/controls.ts';
import type { Registry } from '../registry/registry.ts';

/** The pauses that hold now and that a tenant may know of: its own, and those of types. Undefined: all of them. */
export const pausesInSight = (
  { pauses }: Pick<Registry, 'pauses'>,
  tenant: string | undefined,
  now: number,
): ScopedPause[] =>
  pauses
    .list()
    .filter((pause) => holdsAt(pause, now))
    .filter((pause) => tenant === undefined || pause.tenant === undefined || pause.tenant === tenant);

/** Those that keep a tenant's tasks of a type from being queued. */
export const pausesOf = (
  pauses: readonly ScopedPause[],
  { tenant, type }: { tenant: string; type: string },
): ScopedPause[] =>
  pauses.filter(
    (pause) =>
      (pause.tenant === undefined || pause.tenant === tenant) &&
      (pause.type === undefined || pause.type === type),
  );

export const pauseView = ({ tenant, type, reason, until, actor, at }: ScopedPause) => ({
  tenant: tenant ?? null,
  type: type ?? null,
  reason,
  until: until ?? null,
  actor,
  at,
});
