import { z } from 'zod';
import type { PointInLog } from '../../projections/engine/rebuild/desk.ts';
import { TaskledgerError } from '../domain/errors.ts';
import { parseInstant } from '../intake/instants.ts';

/**
 * A point in the log as users write it: whole numbers below this are sequences, larger ones are ms since 1970. The log
 * would need 27 years at 10 million events a day to get there; as an instant it is in March 1973.
 */
const FIRST_INSTANT_MS = 100_000_000_000;

export const pointParameter = z.union([z.coerce.number().int().min(0), z.string().min(1).max(100)]);
export const POINT_DESCRIPTION =
  'A log sequence (a whole number below 100 000 000 000), or an instant: ISO 8601 with a zone, or ms since 1970';

/** Throws `run_at_invalid` naming the field. */
export function pointOf(field: string, value: string | number): PointInLog {
  if (typeof value === 'number' && value < FIRST_INSTANT_MS) return { seq: value };
  const at = parseInstant(value);
  if (at === undefined)
    throw new TaskledgerError('run_at_invalid', { field, value: JSON.stringify(value).slice(0, 80) });
  return { at };
}

/** Of reads that can be asked about the past. */
export const atParameter = {
  at: pointParameter.optional().describe(`As of then. ${POINT_DESCRIPTION}`),
};
