import type { Service } from '../platform/service.ts';

/** Connects when it is first asked, and ends with the role. */
export const poolOf = (pool: { end(): Promise<void> }): Service => {
  let ended: Promise<void> | undefined;
  return { name: 'postgres', start: async () => {}, stop: () => (ended ??= pool.end()) };
};
