import type { NatsConnection } from '@nats-io/transport-node';
import { z } from 'zod';
import type { Names } from '../../log/subjects.ts';
import type { Logger } from '../../observe/log.ts';
import type { Clock } from '../../platform/clock.ts';
import { openCells } from '../../registry/cells.ts';
import {
  createSubmissionRates,
  type SubmissionRates,
  type SubmissionRatesOptions,
} from './submission-rates.ts';

/** Longer than any answer on a healthy installation takes: after it, each process keeps the rates alone. */
const ANSWER_MS = 500;
const FullAt = z.number();

/** The rates over the bucket that all processes share. `clock`: the same time in all of them. */
export function openRates({
  nc,
  names,
  clock,
  logger,
  ...settings
}: {
  readonly nc: NatsConnection;
  readonly names: Pick<Names, 'buckets'>;
  readonly clock: Clock;
  readonly logger: Logger;
} & Pick<SubmissionRatesOptions, 'tenants' | 'types'>): SubmissionRates {
  const cells = openCells({
    nc,
    bucket: names.buckets.rates,
    parse: (value) => FullAt.parse(value),
    timeoutMs: ANSWER_MS,
  });
  return createSubmissionRates({
    ...settings,
    now: () => clock.now(),
    logger,
    bucket: (key) => ({
      change: async (change) => void (await cells.change(key, (fullAt = 0) => change(fullAt))),
    }),
  });
}
