import { nowUs } from './clock.ts';

/** `i`: number of the task; `t`: when its submission began, in microseconds of the monotonic clock. */
export type BenchPayload = {
  readonly i: number;
  readonly t: number;
  readonly p: string;
};

export const PAYLOAD_BYTES = 200;
const PADDING = 'x'.repeat(PAYLOAD_BYTES);

/** An object that is exactly PAYLOAD_BYTES as JSON. */
export function makePayload(i: number): BenchPayload {
  const t = nowUs();
  const bare = JSON.stringify({ i, t, p: '' }).length;
  return { i, t, p: PADDING.slice(0, PAYLOAD_BYTES - bare) };
}
