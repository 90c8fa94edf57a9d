import { z } from 'zod';
import { NameSchema } from '../domain/names.ts';

export const TenantSchema = z.strictObject({
  name: NameSchema,
  /** ISO 8601, UTC. */
  createdAt: z.iso.datetime(),
  displayName: z.string().max(200).optional(),
});
export type Tenant = z.infer<typeof TenantSchema>;
