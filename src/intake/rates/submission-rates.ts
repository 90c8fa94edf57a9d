import type { Logger } from '../../observe/log.ts';
import type { SubmissionRate } from '../../registry/limits.ts';
import type { Tenant } from '../../registry/tenants.ts';
import type { TypeSettings } from '../../registry/type-settings.ts';
import type { Rate } from './allotment.ts';
import { type SharedBucket, SharedRate } from './shared-rate.ts';

/** Which rate is used up, by whom, and when to try again. */
export interface OverRate {
  readonly tenant: string;
  /** Undefined: the tenant's rate over all types. */
  readonly type: string | undefined;
  readonly ratePerSecond: number;
  readonly burst: number;
  readonly retryAfterMs: number;
}

/** How many tasks a tenant may submit, over all types and of one type: the same bounds for all processes together. */
export interface SubmissionRates {
  /** Takes a token of each rate that holds, or none and says why. Undefined when there is none to ask. */
  take(tenant: string, type: string): undefined | Promise<undefined | OverRate>;
  /** Those that this process is refusing by now. */
  closed(tenant: string, type: string): OverRate[];
}

export interface SubmissionRatesOptions {
  readonly tenants: { get(name: string): Tenant | undefined };
  readonly types: { get(name: string): TypeSettings | undefined };
  /** The shared bucket of a key. */
  readonly bucket: (key: string) => SharedBucket;
  /** The time of the shared buckets, in ms. */
  readonly now: () => number;
  readonly logger: Logger;
  readonly monotonic?: () => number;
}

interface Held {
  readonly rate: SharedRate;
  /** The type that it bounds; undefined for all. */
  readonly of: string | undefined;
}

const OUTAGE_TOLD_MS = 10_000;

export function createSubmissionRates(options: SubmissionRatesOptions): SubmissionRates {
  const { tenants, types, bucket, now, logger, monotonic = () => performance.now() } = options;
  const rates = new Map<string, SharedRate>();
  let toldAt = Number.NEGATIVE_INFINITY;
  const onOutage = (reason: string): void => {
    if (monotonic() - toldAt < OUTAGE_TOLD_MS) return;
    toldAt = monotonic();
    logger.warn(
      { reason },
      'submission rates are kept by each process alone: the shared bucket does not answer',
    );
  };

  function rateOf(key: string, wanted: SubmissionRate): SharedRate {
    const rate: Rate = {
      ratePerSecond: wanted.ratePerSecond,
      burst: wanted.burst ?? Math.max(1, Math.floor(wanted.ratePerSecond)),
    };
    let shared = rates.get(key);
    if (shared === undefined) {
      shared = new SharedRate(rate, { bucket: bucket(key), now, monotonic, onOutage });
      rates.set(key, shared);
    } else shared.rate = rate;
    return shared;
  }

  /** The narrower one first: what it refuses costs the tenant nothing. */
  function* ratesOf(tenant: string, type: string): Generator<Held> {
    const settings = tenants.get(tenant);
    const ofType = settings?.types?.[type]?.submission ?? types.get(type)?.submission;
    if (ofType !== undefined) yield { rate: rateOf(`tenant-type.${tenant}.${type}`, ofType), of: type };
    if (settings?.submission !== undefined)
      yield { rate: rateOf(`tenant.${tenant}`, settings.submission), of: undefined };
  }

  const overRate = (tenant: string, { rate, of }: Held, retryAfterMs: number): OverRate => ({
    tenant,
    type: of,
    ...rate.rate,
    retryAfterMs,
  });

  async function takeAll(tenant: string, held: readonly Held[]): Promise<undefined | OverRate> {
    const taken: SharedRate[] = [];
    for (const one of held) {
      const refusal = await one.rate.take();
      if (refusal === undefined) {
        taken.push(one.rate);
        continue;
      }
      for (const rate of taken) rate.giveBack();
      return overRate(tenant, one, refusal.retryAfterMs);
    }
    return undefined;
  }

  return {
    take(tenant, type) {
      const held = [...ratesOf(tenant, type)];
      return held.length === 0 ? undefined : takeAll(tenant, held);
    },
    closed: (tenant, type) =>
      [...ratesOf(tenant, type)].flatMap((one) =>
        one.rate.closedForMs === 0 ? [] : [overRate(tenant, one, Math.ceil(one.rate.closedForMs))],
      ),
  };
}
