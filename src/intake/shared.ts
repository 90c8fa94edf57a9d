import type { NatsConnection } from '@nats-io/transport-node';
import { z } from 'zod';
import type { Names } from '../log/subjects.ts';
import type { Logger } from '../observe/log.ts';
import type { Clock } from '../platform/clock.ts';
import type { Config } from '../platform/config.ts';
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

const PLACES_ANSWER_MS = 5_000;
const FullAt = z.number();

export function openSharedIntake({
  nc,
  names,
  config,
  clock,
  logger,
  ...settings
}: {
  readonly nc: NatsConnection;
  readonly names: Pick<Names, 'buckets'>;
  readonly config: Pick<Config, 'ratesAnswerMs'>;
  /** The servers': the same in all processes. */
  readonly clock: Clock;
  readonly logger: Logger;
} & Pick<SubmissionRatesOptions, 'tenants' | 'types'>): SharedIntake {
  const fillings = openCells({
    nc,
    bucket: names.buckets.rates,
    parse: (value) => FullAt.parse(value),
    timeoutMs: config.ratesAnswerMs,
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
