/** Milliseconds of a clock that only goes forward and is the same in every thread of this process. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1e6;
}
