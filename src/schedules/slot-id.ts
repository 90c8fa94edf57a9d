import { v5 as uuidV5 } from 'uuid';

/** The root of all slots' task ids. Never to change: a changed root would fire every slot again. */
const ROOT = 'c2a7f9d4-3b60-5e1e-8f4b-6a1d90c7e5b2';

/**
 * The task of a slot. The slot is its identity, so whoever fires it, and however often, there is one task. The version of
 * the schedule is no part of it: a slot that the old and the new version share is one slot.
 */
export const taskIdOfSlot = (tenant: string, name: string, slotAt: number): string =>
  uuidV5(`${tenant} ${name} ${slotAt}`, ROOT);
