import type { LiveTask } from './live-task.ts';

/**
 * What the core wants done: each ends in an append, whose outcome is fed back unless it was stored. `seq` is the task's
 * last sequence at that moment: the append expects it, and a task that has moved on meanwhile makes the decision void.
 */
export type Decision =
  | { readonly kind: 'queue'; readonly task: LiveTask; readonly seq: number }
  | { readonly kind: 'dead_letter'; readonly task: LiveTask; readonly seq: number }
  | { readonly kind: 'cancel'; readonly task: LiveTask; readonly seq: number }
  /** The task is to announce itself again before its last event ages out of the log (rule 5). */
  | { readonly kind: 'carry'; readonly task: LiveTask; readonly seq: number };

/**
 * replaying: folds the past, decides nothing.
 * following: a standby that is caught up; decides nothing.
 * leading: decides.
 */
export type Phase = 'replaying' | 'following' | 'leading';

export interface CoreSettings {
  readonly window: { readonly min: number; readonly max: number; readonly ms: number };
  /** Payloads up to this many bytes of JSON ride in QUEUED. */
  readonly inlinePayloadBytes: number;
  /** Bytes of payload text kept for waiting tasks. */
  readonly payloadCacheBytes: number;
}

/** What one `advance` woke. */
export interface Woken {
  /** Tasks that became due. */
  readonly due: number;
  /** Tasks past their deadline. */
  readonly expired: number;
}

export interface LineStats {
  readonly waiting: number;
  readonly delayed: number;
  readonly ready: number;
  readonly intents: number;
  readonly running: number;
  readonly window: number;
  /** Claims seen, the replayed past included. */
  readonly claimed: number;
  readonly claimsPerSecond: number;
}
