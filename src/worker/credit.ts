/**
 * How many work items to ask the server for, so that no slot waits for work that is there and no work waits here for a
 * slot. Pure; the pull loops carry it out.
 */
export interface TypeDemand {
  /** Attempts this type may still start. */
  readonly free: number;
  /** Items asked for and not delivered yet. */
  readonly outstanding: number;
  /** Most items to have asked for: grows while a type delivers what was asked for, shrinks when it does not. */
  readonly window: number;
}

/** Ask for more only when nothing is asked for, or when this share of what could be asked for is missing: fewer requests. */
const REFILL_SHARE = 0.25;

/**
 * What to ask for, by type, in the order given (rotate it for fairness). `free` slots are shared by all types. A type
 * with nothing outstanding always asks for one while a slot is free: so with many types a few items more than there
 * are slots may come, which are handed back.
 */
export function creditsOf(types: readonly TypeDemand[], free: number): number[] {
  let left = free - types.reduce((sum, { outstanding }) => sum + outstanding, 0);
  return types.map((type) => {
    const room = Math.min(type.free, type.window, free);
    const missing = room - type.outstanding;
    if (missing <= 0) return 0;
    if (type.outstanding > 0 && missing < Math.ceil(room * REFILL_SHARE)) return 0;
    const asked = type.outstanding === 0 ? Math.max(1, Math.min(missing, left)) : Math.min(missing, left);
    if (asked <= 0) return 0;
    left -= asked;
    return asked;
  });
}
