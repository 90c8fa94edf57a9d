import { z } from 'zod';
import { NameSchema } from '../domain/names.ts';
import { LimitsSchema, ShareSchema, SubmissionRateSchema, WeightSchema } from './limits.ts';

export const TenantSchema = z.strictObject({
  name: NameSchema,
  /** ISO 8601, UTC. */
  createdAt: z.iso.datetime(),
  displayName: z.string().max(200).optional(),
  /** Share of the workers, within a priority class, against other tenants that wait; 1 when absent. */
  weight: WeightSchema.optional(),
  /** Over all types together. */
  limits: LimitsSchema.optional(),
  /** By type. */
  types: z.record(NameSchema, ShareSchema).optional(),
  /** Waiting tasks of all types above which submission answers 429; no limit when absent. */
  maxBacklog: z.int().min(1).optional(),
  /** Tasks a second that may be submitted, over all types; no limit when absent. */
  submission: SubmissionRateSchema.optional(),
});
export type Tenant = z.infer<typeof TenantSchema>;
