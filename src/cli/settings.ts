import { InvalidArgumentError } from 'commander';

/** What an option says that is to remove a setting. */
const NONE = 'none';
export type NumberOrNone = number | typeof NONE;

function aboveZero(text: string): number | undefined {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : 0;
  return value > 0 ? value : undefined;
}

export function numberAboveZero(text: string): number {
  const value = aboveZero(text);
  if (value === undefined) throw new InvalidArgumentError('a number above 0 is expected.');
  return value;
}

/** A number above 0, or `none`. */
export function numberOrNone(text: string): NumberOrNone {
  const value = text === NONE ? NONE : aboveZero(text);
  if (value === undefined) throw new InvalidArgumentError('a number above 0 is expected, or "none".');
  return value;
}

export interface RateOptions {
  readonly submitRate?: NumberOrNone;
  readonly submitBurst?: NumberOrNone;
}

/** The part of a patch that bounds submission. Without a rate there is no burst either. */
export function submissionPatch({ submitRate, submitBurst }: RateOptions): object {
  if (submitRate === NONE) return { submission: null };
  if (submitRate === undefined && submitBurst === undefined) return {};
  return { submission: present({ ratePerSecond: submitRate, burst: submitBurst }) };
}

/** The part of a patch that options give: without what is undefined, and null for what is to be removed. */
export const present = (parts: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(parts).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value === NONE ? null : value]],
    ),
  );

export const rateText = (rate: { ratePerSecond?: number; burst?: number } | undefined): string | undefined =>
  rate?.ratePerSecond === undefined
    ? undefined
    : `${rate.ratePerSecond} a second${rate.burst === undefined ? '' : `, ${rate.burst} at once`}`;
