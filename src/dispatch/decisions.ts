import type { LiveTask } from './live-task.ts';

/**
 * What the core wants done. `seq` is the task's last sequence at that moment: the append expects it, and a task that
 * has moved on meanwhile makes the decision void.
 */
export type Decision =
  | { readonly kind: 'queue'; readonly task: LiveTask; readonly seq: number }
  | { readonly kind: 'dead_letter'; readonly task: LiveTask; readonly seq: number }
  | { readonly kind: 'cancel'; readonly task: LiveTask; readonly seq: number }
  /** The task is to announce itself again before its last event ages out of the log (rule 5). */
  | { readonly kind: 'carry'; readonly task: LiveTask; readonly seq: number }
  /** Nothing depends on it but punctuality: the core wakes the task itself when the timer does not. */
  | { readonly kind: 'set_timer'; readonly task: LiveTask; readonly seq: number; readonly dueAt: number };

/** A decision that ends in an append, so that its outcome must be fed back. */
export type Intent = Exclude<Decision, { kind: 'set_timer' }>;

/**
 * replaying: folds the past, decides nothing, expects no timers.
 * following: a standby that is caught up; decides nothing and leaves timers to the leader.
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
  /** Tasks that became due by the core's own watch. */
  readonly due: number;
  /** Of those, tasks whose server-side timer should have come first. */
  readonly overdue: number;
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
