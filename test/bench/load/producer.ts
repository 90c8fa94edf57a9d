import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { nowUs } from './clock.ts';
import type { ProducerCalls } from './messages.ts';
import { makePayload } from './payload.ts';
import { serve } from './serve.ts';
import { type Due, openSubmission, type Submission } from './submission.ts';

/** The submitting side: one process, one submission, one order at a time (`credit` and `close` steer a running closed loop). */
let submission: Submission | undefined;
let nextTask = 0;
const loop = { credit: 0, closing: false, wake: (): void => {} };

/** Submissions that one turn of the event loop may start, so that answers are read in between. */
const BURST = 64;
const MICROSECONDS = 1e6;

function opened(): Submission {
  if (submission === undefined) throw new Error('open was not called');
  return submission;
}

const secondsSince = (startUs: number): number => (nowUs() - startUs) / MICROSECONDS;

const dueIn = (second: number, task: number): Due => ({
  runAt: new Date(second + (task % 1_000)).toISOString(),
});

/** Remembers outstanding submissions, counts the accepted, and keeps the first failure. */
function track() {
  const pending = new Set<Promise<void>>();
  let accepted = 0;
  let failure: unknown;
  return {
    add(work: Promise<void>, tasks: number): void {
      const tracked = work
        .then(
          () => {
            accepted += tasks;
          },
          (error: unknown) => {
            failure ??= error;
            loop.wake();
          },
        )
        .finally(() => pending.delete(tracked));
      pending.add(tracked);
    },
    check(): void {
      if (failure !== undefined) throw failure;
    },
    async settle(): Promise<number> {
      await Promise.all(pending);
      this.check();
      return accepted;
    },
  };
}

serve<ProducerCalls>({
  async open(target) {
    submission = await openSubmission(target);
  },

  async flood({
    tasks = Number.POSITIVE_INFINITY,
    seconds = Number.POSITIVE_INFINITY,
    inFlight,
    batch,
    dueFrom,
  }) {
    const submit = opened();
    const startUs = nowUs();
    const last = nextTask + tasks;
    let accepted = 0;
    const lane = async (): Promise<void> => {
      while (nextTask < last && secondsSince(startUs) < seconds) {
        if (batch === 1) {
          await submit.one(makePayload(nextTask++));
          accepted += 1;
          continue;
        }
        const payloads = Array.from({ length: Math.min(batch, last - nextTask) }, () =>
          makePayload(nextTask++),
        );
        const dues = dueFrom === undefined ? [] : payloads.map(({ i }) => dueIn(dueFrom, i));
        await submit.many(payloads, dues);
        accepted += payloads.length;
      }
    };
    await Promise.all(Array.from({ length: inFlight }, lane));
    return { tasks: accepted, seconds: secondsSince(startUs) };
  },

  async pace({ perSecond, seconds, delayMs }) {
    const submit = opened();
    const startUs = nowUs();
    const total = perSecond * seconds;
    const outstanding = track();
    let maxLagUs = 0;
    for (let sent = 0; sent < total; await delay(1)) {
      const due = Math.min(total, Math.floor(secondsSince(startUs) * perSecond) + 1);
      for (; sent < due; sent += 1) {
        maxLagUs = Math.max(maxLagUs, nowUs() - (startUs + (sent / perSecond) * MICROSECONDS));
        outstanding.add(submit.one(makePayload(nextTask++), delayMs === undefined ? {} : { delayMs }), 1);
      }
      outstanding.check();
    }
    const accepted = await outstanding.settle();
    return { tasks: accepted, seconds: secondsSince(startUs), maxLagMs: Math.round(maxLagUs / 10) / 100 };
  },

  async closedLoop({ window }) {
    const submit = opened();
    const startUs = nowUs();
    const outstanding = track();
    loop.credit = window;
    loop.closing = false;
    while (!loop.closing) {
      if (loop.credit === 0) {
        await new Promise<void>((resolve) => {
          loop.wake = resolve;
        });
      }
      for (let burst = 0; loop.credit > 0 && burst < BURST; burst += 1) {
        loop.credit -= 1;
        outstanding.add(submit.one(makePayload(nextTask++)), 1);
      }
      outstanding.check();
      await nextTurn();
    }
    return { tasks: await outstanding.settle(), seconds: secondsSince(startUs) };
  },

  credit({ tasks }) {
    loop.credit += tasks;
    loop.wake();
  },

  close() {
    loop.closing = true;
    loop.wake();
  },

  async end() {
    await submission?.close();
    setImmediate(() => process.disconnect?.());
  },
});
