import type { DispatchSettings } from '../registry/registry.ts';
import type { Ledger } from './ledger.ts';

/** Tells `terms` all that is set, and every change from then on. To be called before the log is read. */
export function followTerms(
  { tenants, types, pauses }: DispatchSettings,
  {
    terms,
    now,
    onChange,
  }: {
    readonly terms: Pick<Ledger, 'putTenant' | 'putType' | 'putPause'>;
    /** The servers' time, in ms since 1970. */
    readonly now: () => number;
    readonly onChange: () => void;
  },
): void {
  for (const tenant of tenants.list()) terms.putTenant(tenant.name, tenant, now());
  for (const type of types.list()) terms.putType(type.type, type, now());
  for (const { tenant, type, ...pause } of pauses.list()) terms.putPause({ tenant, type }, pause, now());
  tenants.onChange((name, settings) => {
    terms.putTenant(name, settings, now());
    onChange();
  });
  types.onChange((type, settings) => {
    terms.putType(type, settings, now());
    onChange();
  });
  pauses.onChange((scope, pause) => {
    terms.putPause(scope, pause, now());
    onChange();
  });
}
