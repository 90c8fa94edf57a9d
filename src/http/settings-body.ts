import { z } from 'zod';

/** A body for `merged`: any of the settings, null for those that are to be removed. For the OpenAPI document. */
export const patchOf = <S extends z.ZodRawShape>(settings: z.ZodObject<S>): z.ZodType =>
  z.strictObject(
    Object.fromEntries(
      Object.entries(settings.shape).map(([name, schema]) => [
        name,
        (schema as z.ZodType).nullable().describe('Null removes it'),
      ]),
    ),
  );

/** Members that are one choice: a part of one does not go with a part of another. */
const WHOLE: ReadonlySet<string> = new Set(['backoff']);

/** JSON merge patch (RFC 7396): objects are merged, null removes, all else replaces; a backoff is replaced as a whole. */
export function merged(current: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result: Record<string, unknown> = isObject(current) ? { ...current } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = merged(WHOLE.has(name) ? undefined : result[name], value);
  }
  return result;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Of a PATCH: an object, whatever is in it; the result is checked. */
export const PatchSchema = z.record(z.string(), z.unknown());
