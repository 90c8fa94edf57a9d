/** Wall clock in ms since 1970. Passed in, so that tests choose the time. Never decides who owns a task. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** For "how long since": a clock that only goes forward, from an arbitrary start. Jumps of the wall clock leave it alone. */
export const monotonicClock: Clock = { now: () => performance.now() };
