const ISO_INSTANT =
  /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})(?::(\d{2})(?:\.\d{1,9})?)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
/** The end of the year 9999: later instants have no four-digit ISO form. */
const LATEST_MS = Date.UTC(10_000, 0, 1) - 1;

/**
 * Milliseconds since 1970 of an ISO 8601 instant with a zone (`2026-01-31T09:30:00+01:00`) or of a number of
 * milliseconds; undefined for everything else. A time without a zone is no instant, and 30 February is no day.
 */
export function parseInstant(value: unknown): number | undefined {
  if (typeof value === 'number') return inRange(value) ? value : undefined;
  if (typeof value !== 'string') return undefined;
  const parts = ISO_INSTANT.exec(value);
  if (parts === null) return undefined;
  const [year, month, day, hour, minute, second] = parts.slice(1).map((part) => Number(part ?? 0));
  // Date.parse takes 30 February for 2 March; a day that survives the round trip exists.
  const date = new Date(Date.UTC(year ?? 0, (month ?? 0) - 1, day));
  if (date.getUTCMonth() + 1 !== month || date.getUTCDate() !== day) return undefined;
  if ((hour ?? 0) > 23 || (minute ?? 0) > 59 || (second ?? 0) > 59) return undefined;
  const ms = Date.parse(value);
  return inRange(ms) ? ms : undefined;
}

const inRange = (ms: number): boolean => Number.isInteger(ms) && ms >= 0 && ms <= LATEST_MS;
