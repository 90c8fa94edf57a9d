import { z } from 'zod';

/** Tenant and type names. They become subject tokens, so dots, wildcards, spaces and capitals never pass. */
export const NAME_PATTERN = /^[a-z0-9][a-z0-9_-]{0,62}$/;

/** Any RFC 9562 UUID in canonical lower case. Versions are not told apart: v4, v5 and v7 all serve as task ids. */
export const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export const isName = (value: unknown): value is string =>
  typeof value === 'string' && NAME_PATTERN.test(value);
export const isTaskId = (value: unknown): value is string =>
  typeof value === 'string' && UUID_PATTERN.test(value);

export const NameSchema = z
  .string()
  .regex(NAME_PATTERN, 'use 1 to 63 of a-z, 0-9, "_" and "-", starting with a letter or a digit');
export const TaskIdSchema = z.string().regex(UUID_PATTERN, 'use a UUID in lower case');

/** 1 is served first, 4 last. */
export const PrioritySchema = z.int().min(1).max(4);
export type Priority = 1 | 2 | 3 | 4;
export const DEFAULT_PRIORITY: Priority = 2;
