import { z } from 'zod';
import { DEFAULT_PRIORITY, NameSchema, type Priority, PrioritySchema } from '../domain/names.ts';
import { type PolicyOverride, PolicyOverrideSchema, policyOverride } from '../domain/policy.ts';
import { SubmissionRateSchema } from './limits.ts';

/** What an installation has decided about a task type. A type without settings works, with the defaults. */
export const TypeSettingsSchema = z.strictObject({
  type: NameSchema,
  /** Parts of the default policy that this type replaces. Recorded in a task at submission: later changes touch later tasks. */
  policy: PolicyOverrideSchema.optional(),
  /** Of tasks that name none. */
  priority: PrioritySchema.optional(),
  /** Waiting tasks above which submission answers 429; TASKLEDGER_MAX_BACKLOG when absent. */
  maxBacklog: z.int().min(1).optional(),
  /** Tasks of all tenants handed to the workers or running at one time. */
  concurrency: z.int().min(1).max(1_000_000).optional(),
  /** The same for the tasks of one tenant that share a `concurrencyKey`; 1 when absent. */
  concurrencyKeyLimit: z.int().min(1).max(1_000_000).optional(),
  /** Tasks of the type a second that each tenant may submit, unless its own settings say otherwise; no limit when absent. */
  submission: SubmissionRateSchema.optional(),
});
export type TypeSettings = z.infer<typeof TypeSettingsSchema>;

/** What a new task has: its own wishes, else its type's settings, else the defaults. */
export function withTypeSettings(
  settings: TypeSettings | undefined,
  own: { readonly priority: number | undefined; readonly policy: PolicyOverride | undefined },
): { readonly priority: Priority; readonly policy: PolicyOverride | undefined } {
  const none = settings?.policy === undefined && own.policy === undefined;
  return {
    priority: (own.priority ?? settings?.priority ?? DEFAULT_PRIORITY) as Priority,
    policy: none ? undefined : policyOverride({ ...settings?.policy, ...own.policy }),
  };
}
