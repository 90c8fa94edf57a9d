import { z } from 'zod';

/** What a payload or a result may be: exactly what JSON can hold. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export const JsonSchema: z.ZodType<Json, Json> = z.json() as z.ZodType<Json, Json>;
