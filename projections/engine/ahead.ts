import type { Checkpoint } from './checkpoint.ts';
import type { LogState } from './log-state.ts';

/** How long a projector looks again before it believes that the log was replaced, or lost its end. */
export const LOOK_AGAIN_MS = 500;
const LOOKS = {
  /** Another stream is another stream at the second look too. */
  replaced: 3,
  /**
   * A leader that its peers cannot reach reports an older end of the same stream until it has noticed: 10 s in
   * nats-server 2.15, and it takes its time to be asked elsewhere.
   */
  shortened: 40,
} as const;

/** The checkpoints that the log cannot have come to. */
export const aheadOf = (checkpoints: readonly Checkpoint[], log: LogState): Checkpoint[] =>
  checkpoints.filter(({ seq, logId }) => seq > log.lastSeq || logId !== log.logId);

/** How often to look before the alarm. */
export const looksBefore = (ahead: readonly Checkpoint[], log: LogState): number =>
  ahead.some(({ logId }) => logId !== log.logId) ? LOOKS.replaced : LOOKS.shortened;
