import { z } from 'zod';
import { TaskledgerError } from '../domain/errors.ts';
import { parseInstant } from '../intake/instants.ts';

export const instantParameter = z.union([z.coerce.number().int(), z.string()]).optional();

/** In ms since 1970. Throws `run_at_invalid`. */
export function instantOf(field: string, value: string | number | undefined): number | undefined {
  if (value === undefined) return undefined;
  const ms = parseInstant(value);
  if (ms === undefined)
    throw new TaskledgerError('run_at_invalid', { field, value: JSON.stringify(value).slice(0, 80) });
  return ms;
}
