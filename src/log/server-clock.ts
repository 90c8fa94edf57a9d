import { setTimeout as delay } from 'node:timers/promises';
import type { NatsConnection } from '@nats-io/transport-node';
import { z } from 'zod';
import { TaskledgerError } from '../domain/errors.ts';
import type { Clock } from '../platform/clock.ts';
import type { Service } from '../platform/service.ts';
import type { Names } from './subjects.ts';

/**
 * The time of the NATS servers as this process knows it: never ahead of it, behind by about the time a message takes. The
 * host's wall clock has no part in it, so that a host whose clock is an hour wrong decides as all others do.
 */
export interface ServerClock extends Clock, Service {}

const SAMPLE_MS = 2_000;
/** Samples of this long count: a server's clock that is set back is followed after twice as long at the latest. */
const MEMORY_MS = 30_000;

/** `ask` gives the server's time (ms since 1970) at some instant between the call and the answer. */
export function createServerClock(
  ask: () => Promise<number>,
  monotonic: Clock = { now: () => performance.now() },
): ServerClock {
  let stopping = new AbortController();
  let running: Promise<void> | undefined;
  // The greatest difference seen between a server's time and the moment of hearing of it: the answer that came fastest.
  let offset = Number.NEGATIVE_INFINITY;
  let offsetBefore = Number.NEGATIVE_INFINITY;
  let since = 0;

  async function sample(): Promise<void> {
    const serverTime = await ask();
    const heardAt = monotonic.now();
    if (heardAt - since > MEMORY_MS) {
      offsetBefore = offset;
      offset = Number.NEGATIVE_INFINITY;
      since = heardAt;
    }
    offset = Math.max(offset, serverTime - heardAt);
  }

  async function run(): Promise<void> {
    const { signal } = stopping;
    while (!signal.aborted) {
      await delay(SAMPLE_MS, undefined, { signal, ref: false }).catch(() => undefined);
      // A server that does not answer: the last samples go on counting.
      if (!signal.aborted) await sample().catch(() => undefined);
    }
  }

  return {
    name: 'server clock',
    now() {
      const best = Math.max(offset, offsetBefore);
      if (best === Number.NEGATIVE_INFINITY) throw new Error('the server clock has not started');
      return Math.floor(monotonic.now() + best);
    },
    async start() {
      stopping = new AbortController();
      since = monotonic.now();
      await sample();
      running = run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

const Answer = z.object({ ts: z.string() });

/** By the answers of the leader of a small bucket. `start` throws `log_unavailable`. */
export function clockOfServers(nc: NatsConnection, names: Pick<Names, 'buckets'>): ServerClock {
  const subject = `$JS.API.STREAM.INFO.KV_${names.buckets.tenants}`;
  return createServerClock(async () => {
    try {
      const answer = await nc.request(subject, '', { timeout: SAMPLE_MS });
      return Date.parse(Answer.parse(answer.json()).ts);
    } catch (cause) {
      throw new TaskledgerError('log_unavailable', { reason: (cause as Error).message }, { cause });
    }
  });
}
