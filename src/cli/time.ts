const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** A length of time for people: `850 ms`, `4.2 s`, `3 min`, `2 d`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  for (const [unit, size] of UNITS) {
    if (ms >= size)
      return `${ms < 10 * size && unit === 's' ? (ms / size).toFixed(1) : Math.floor(ms / size)} ${unit}`;
  }
  return '0 ms';
}

/** An instant relative to now: `3 min ago`, `in 20 s`. */
export function relative(iso: string, now: number): string {
  const ms = Date.parse(iso) - now;
  return ms > 0 ? `in ${duration(ms)}` : `${duration(-ms)} ago`;
}

/** `2026-01-31 09:30:00Z (3 min ago)` */
export const instant = (iso: string, now: number): string =>
  `${iso.slice(0, 19).replace('T', ' ')}Z (${relative(iso, now)})`;

const FACTORS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of `500ms`, `30s`, `5m`, `2h` or `1d`; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? [];
  const factor = FACTORS[unit ?? ''];
  return amount === undefined || factor === undefined ? undefined : Math.round(Number(amount) * factor);
}
