import { setTimeout as delay } from 'node:timers/promises';
import type { NatsConnection } from '@nats-io/transport-node';
import { z } from 'zod';
import type { Clock } from '../platform/clock.ts';
import { Patience } from '../platform/patience.ts';
import type { Service } from '../platform/service.ts';
import type { Names } from './subjects.ts';
import { orUnavailable } from './unavailable.ts';

/**
 * The time of the NATS servers as this process knows it: never ahead of it, behind by about the time a message takes. The
 * host's wall clock has no part in it, so that a host whose clock is an hour wrong decides as all others do.
 */
export interface ServerClock extends Clock, Service {
  /** A message is here that a server stored at `storedAt` (ms since 1970): a sample for nothing. */
  heard(storedAt: number): void;
}

const SAMPLE_MS = 2_000;
/** The most that this host's monotonic clock is taken to run fast: 200 ppm. Between samples the clock loses as much. */
const DRIFT = 2e-4;
/** The samples of this long decide together whether a server's clock was set back: followed after twice as long at the latest. */
const MEMORY_MS = 30_000;
/** What the fastest of them may be behind before the clock follows it: no answer takes so long for so long. */
const SET_BACK_MS = 500;

/** `ask` gives the server's time (ms since 1970) at some instant between the call and the answer. */
export function createServerClock(
  ask: () => Promise<number>,
  monotonic: Clock = { now: () => performance.now() },
): ServerClock {
  let stopping = new AbortController();
  let running: Promise<void> | undefined;
  // The greatest difference seen between a server's time and the moment of hearing of it: the answer that came fastest.
  let offset = Number.NEGATIVE_INFINITY;
  let offsetOfLate = Number.NEGATIVE_INFINITY;
  /** When the first of the samples was heard that are in `offsetOfLate`. */
  let since: number | undefined;

  const slowed = (at = monotonic.now()): number => at * (1 - DRIFT);

  function heard(serverTime: number): void {
    const heardAt = monotonic.now();
    const seen = serverTime - slowed(heardAt);
    offset = Math.max(offset, seen);
    offsetOfLate = Math.max(offsetOfLate, seen);
    since ??= heardAt;
    if (heardAt - since < MEMORY_MS) return;
    if (offset - offsetOfLate > SET_BACK_MS) offset = offsetOfLate;
    offsetOfLate = Number.NEGATIVE_INFINITY;
    since = undefined;
  }

  async function run(): Promise<void> {
    const { signal } = stopping;
    while (!signal.aborted) {
      await delay(SAMPLE_MS, undefined, { signal, ref: false }).catch(() => undefined);
      // A server that does not answer: the last samples go on counting.
      if (!signal.aborted) await ask().then(heard, () => undefined);
    }
  }

  return {
    name: 'server clock',
    heard,
    now() {
      if (offset === Number.NEGATIVE_INFINITY) throw new Error('the server clock has not started');
      return Math.floor(slowed() + offset);
    },
    async start(patience = new Patience()) {
      if (running !== undefined) return;
      stopping = new AbortController();
      heard(await patience.waitFor('the time of the servers', ask));
      running ??= run();
    },
    async stop() {
      stopping.abort();
      await running;
      running = undefined;
    },
  };
}

const Answer = z.object({ ts: z.string() });

/** By the answers of the server that leads TASKS: its time is that of the events. `start` throws `log_unavailable`. */
export function clockOfServers(nc: NatsConnection, names: Pick<Names, 'streams'>): ServerClock {
  const subject = `$JS.API.STREAM.INFO.${names.streams.tasks}`;
  return createServerClock(() =>
    orUnavailable(async () => {
      const answer = await nc.request(subject, '', { timeout: SAMPLE_MS });
      return Date.parse(Answer.parse(answer.json()).ts);
    }),
  );
}
