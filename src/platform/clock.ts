/** Time in ms since 1970. Passed in, so that tests choose it. Never decides who owns a task. */
export interface Clock {
  now(): number;
}

/** The host's, which people and NTP may set: for what is displayed. What depends on the time goes by src/log/server-clock.ts. */
export const systemClock: Clock = { now: () => Date.now() };

/** For "how long since": a clock that only goes forward, from an arbitrary start. Jumps of the wall clock leave it alone. */
export const monotonicClock: Clock = { now: () => performance.now() };
