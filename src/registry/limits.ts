import { z } from 'zod';

/** How far a share may lean: 1 is what everybody has. */
export const WeightSchema = z.number().min(0.01).max(1_000);

/** Bounds on dispatch. To stop it altogether is a pause, which has a reason and an author. */
const limits = {
  /** Tasks handed to the workers or running at one time. */
  concurrency: z.int().min(1).max(1_000_000).optional(),
  /** Tasks handed to the workers a second, retries included. */
  ratePerSecond: z.number().min(0.001).max(1_000_000).optional(),
  /** How many of them may go together after a calm time; one second's worth, at least 1, when absent. */
  burst: z.int().min(1).max(1_000_000).optional(),
};
export const LimitsSchema = z.strictObject(limits);
export type Limits = z.infer<typeof LimitsSchema>;

const DAY_S = 86_400;

/** Bound on submission over HTTP and by submitters, all processes together. */
export const SubmissionRateSchema = z
  .strictObject({
    ratePerSecond: z.number().min(0.001).max(1_000_000),
    /** How many may come together after a calm time; one second's worth, at least 1, when absent. */
    burst: z.int().min(1).max(1_000_000).optional(),
  })
  .refine(({ ratePerSecond, burst = 1 }) => burst === 1 || burst <= ratePerSecond * DAY_S, {
    path: ['burst'],
    error: "must not be more than a day's worth of ratePerSecond",
  });
export type SubmissionRate = z.infer<typeof SubmissionRateSchema>;

/** What one tenant has of one type: its weight there instead of its general one, and limits besides its general ones. */
export const ShareSchema = z.strictObject({
  weight: WeightSchema.optional(),
  ...limits,
  /** Instead of the one that the type's settings give to every tenant. */
  submission: SubmissionRateSchema.optional(),
});
