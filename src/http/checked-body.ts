import type { z } from 'zod';
import { checkJson, checkText, type JsonLimits } from '../intake/json-check.ts';
import { parse } from './route.ts';

/** Of a body that carries no payload of a task. */
const USUAL_LIMITS: JsonLimits = { maxBytes: 65_536, maxDepth: 8 };

/** A body as its schema reads it, an absent one as `{}`. Throws what is wrong with it. */
export function checkedBody<T>(schema: z.ZodType<T>, body: unknown, limits = USUAL_LIMITS): T {
  const unfit = checkJson(body ?? null, 'body', limits);
  if (unfit !== undefined) throw unfit.error;
  return parse(schema, body ?? {});
}

/** Throws what makes a free text unfit to be stored or asked for: NUL, lone surrogates. */
export function checkStorable(text: string, field: string): void {
  const found = checkText(text, field);
  if (found !== undefined) throw found.error;
}
