import type { Config } from '../platform/config.ts';

/** Room for everything of a task but its payload. */
const ENVELOPE_BYTES = 65_536;
/** `\uXXXX` is six bytes in the body for two or three in the payload. */
const ESCAPED = 3;
const MAX_BODY_BYTES = 16 * 1_024 * 1_024;

/** Largest body of one task: any payload within its limit fits, however it is escaped. A larger one is refused unread. */
export const taskBodyLimit = ({ maxPayloadBytes }: Pick<Config, 'maxPayloadBytes'>): number =>
  maxPayloadBytes * ESCAPED + ENVELOPE_BYTES;

/** Largest body of a batch: its tasks at their largest, but no more than 16 MiB. */
export const batchBodyLimit = (config: Pick<Config, 'maxPayloadBytes' | 'maxBatchTasks'>): number =>
  Math.max(taskBodyLimit(config), Math.min(MAX_BODY_BYTES, config.maxBatchTasks * taskBodyLimit(config)));
