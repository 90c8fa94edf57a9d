import type { NatsConnection } from '@nats-io/transport-node';
import { z } from 'zod';
import type { Names } from '../log/subjects.ts';
import type { Logger } from '../observe/log.ts';
import type { Clock } from '../platform/clock.ts';
import { openCells } from '../registry/cells.ts';
import { PlaceSchema } from './debounce.ts';
import type { IntakeOptions } from './intake.ts';
import {
  createSubmissionRates,
  type SubmissionRates,
  type SubmissionRatesOptions,
} from './rates/submission-rates.ts';

/** What all processes that take submissions have in common, besides the log. */
export interface SharedIntake extends Pick<IntakeOptions, 'windows'> {
  readonly rates: SubmissionRates;
}

/** Longer than any answer on a healthy installation takes: after it, each process keeps the rates alone. */
const RATES_ANSWER_MS = 500;
const PLACES_ANSWER_MS = 5_000;
const FullAt = z.number();

export function openSharedIntake({
  nc,
  names,
  clock,
  logger,
  ...settings
}: {
  readonly nc: NatsConnection;
  readonly names: Pick<Names, 'buckets'>;
  /** The servers': the same in all processes. */
  readonly clock: Clock;
  readonly logger: Logger;
} & Pick<SubmissionRatesOptions, 'tenants' | 'types'>): SharedIntake {
  const fillings = openCells({
    nc,
    bucket: names.buckets.rates,
    parse: (value) => FullAt.parse(value),
    timeoutMs: RATES_ANSWER_MS,
  });
  const rates = createSubmissionRates({
    ...settings,
    now: () => clock.now(),
    logger,
    bucket: (key) => ({
      change: async (change) => void (await fillings.change(key, (fullAt = 0) => change(fullAt))),
    }),
  });
  const places = openCells({
    nc,
    bucket: names.buckets.debounces,
    parse: (value) => PlaceSchema.parse(value),
    timeoutMs: PLACES_ANSWER_MS,
  });
  return { rates, windows: { clock, places } };
}
