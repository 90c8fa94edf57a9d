/** Wall clock in ms since 1970. Passed in, so that tests choose the time. Never decides who owns a task. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };
