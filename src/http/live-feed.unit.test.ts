import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { given, ingest } from '../../test/support/life.ts';
import type { Recorded } from '../domain/events.ts';
import type { LogReader, ReaderOptions } from '../log/event-log.ts';
import { silentLogger } from '../observe/log.ts';
import type { EndReason, FeedClient, FeedPlace } from './feed-place.ts';
import { LiveFeed } from './live-feed.ts';

const submitted = given(ingest()).events[0]?.event;
if (submitted === undefined) throw new Error('no event');
const event = submitted;

/** A log whose readers are moved by hand; even sequences are acme's, odd ones zeta's. */
function setup({ bufferBytes = 1_000_000, stored = 0, firstSeq = 1 } = {}) {
  const events: Recorded[] = [];
  const append = (count: number): void => {
    for (let n = 0; n < count; n += 1) {
      const seq = events.length + 1;
      events.push({ seq, storedAt: seq, event: { ...event, tenant: seq % 2 === 0 ? 'acme' : 'zeta' } });
    }
  };
  append(stored);
  const readers: HandReader[] = [];
  const feed = new LiveFeed({
    log: { bounds: async () => ({ firstSeq, lastSeq: events.length }) },
    readLog: (options) => {
      const reader = new HandReader(events, options);
      readers.push(reader);
      return reader;
    },
    logger: silentLogger,
    bufferBytes,
  });
  /** Until nothing moves any more. */
  const settle = async (): Promise<void> => {
    for (let still = 0; still < 3; ) {
      await nextTurn();
      let moved = false;
      for (const reader of readers) moved = reader.deliver(7) || moved;
      still = moved ? 0 : still + 1;
    }
  };
  const join = async (since?: number, tenant?: string) => {
    const { place, gap } = await feed.enter(since);
    const client = new HandClient(place, tenant);
    place.follow(client);
    return Object.assign(client, { gap });
  };
  return { append, readers, feed, settle, join };
}

class HandReader implements LogReader {
  readonly name = 'reader';
  stopped = false;
  #busy = false;
  #next: number;
  readonly #events: readonly Recorded[];
  readonly #options: ReaderOptions;
  constructor(events: readonly Recorded[], options: ReaderOptions) {
    this.#events = events;
    this.#options = options;
    this.#next = options.fromSeq;
  }
  async start(): Promise<void> {}
  async stop(): Promise<void> {
    this.stopped = true;
  }
  /** False when there is nothing, or the batch before has not been taken. */
  deliver(most: number): boolean {
    const events = this.#events.slice(this.#next - 1, this.#next - 1 + most);
    const lastSeq = events.at(-1)?.seq;
    if (this.stopped || this.#busy || lastSeq === undefined) return false;
    this.#busy = true;
    this.#next = lastSeq + 1;
    void Promise.resolve(this.#options.onBatch({ events, unreadable: [], lastSeq })).then(() => {
      this.#busy = false;
    });
    return true;
  }
  position(): number {
    return this.#next - 1;
  }
  async whenReached(): Promise<void> {}
}

class HandClient implements FeedClient {
  readonly heard: number[] = [];
  readonly filter: { tenant: string | undefined };
  readonly #place: FeedPlace;
  ended: EndReason | undefined;
  blocked = false;
  #room: (() => void) | undefined;
  constructor(place: FeedPlace, tenant: string | undefined) {
    this.#place = place;
    this.filter = { tenant };
  }
  reached(): number {
    return this.#place.reached();
  }
  write(messages: string): void {
    for (const [, seq] of messages.matchAll(/^id: (\d+)$/gm)) this.heard.push(Number(seq));
  }
  async writeAndWait(messages: string): Promise<boolean> {
    this.write(messages);
    if (this.blocked) await new Promise<void>((resolve) => (this.#room = resolve));
    return this.ended === undefined;
  }
  take(): void {
    this.blocked = false;
    this.#room?.();
  }
  end(reason: EndReason): void {
    this.ended = reason;
    this.#place.leave();
  }
}

const upTo = (from: number, to: number): number[] =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index);

describe('the live feed', () => {
  test('is read once for all who follow it from now on', async () => {
    const { append, readers, settle, join } = setup({ stored: 3 });
    const [one, two] = [await join(), await join(undefined, 'acme')];
    append(3);
    await settle();
    expect(readers).toHaveLength(1);
    expect(one.heard).toEqual([4, 5, 6]);
    expect(two.heard).toEqual([4, 6]);
    expect(two.reached()).toBe(6);
  });

  test('is joined by one who comes back once its own reader has met it, without a gap and without doubling', async () => {
    const { append, readers, settle, join } = setup({ stored: 40 });
    const live = await join();
    const back = await join(10);
    const [, past] = readers;
    past?.deliver(7);
    await nextTurn();
    expect(back.heard).toEqual(upTo(11, 17));
    append(5);
    await settle();
    expect(past?.stopped).toBe(true);
    append(2);
    await settle();
    expect(back.heard).toEqual(upTo(11, 47));
    expect(live.heard).toEqual(upTo(41, 47));
    expect(readers).toHaveLength(2);
  });

  test('holds the present back, up to a bound, from one who is slow to take its past', async () => {
    const { append, readers, settle, join } = setup({ stored: 20, bufferBytes: 3_000 });
    const slow = await join(0);
    readers[1]?.deliver(7);
    await nextTurn();
    slow.blocked = true;
    await settle();
    append(2);
    await settle();
    expect(slow.ended).toBeUndefined();
    append(30);
    await settle();
    expect(slow.ended).toBe('slow');
    slow.take();
    await settle();
    expect(slow.heard).toEqual(upTo(1, 14));
    expect(readers.map(({ stopped }) => stopped)).toEqual([true, true]);
  });

  test('says what has aged out of the log', async () => {
    const { join } = setup({ stored: 20, firstSeq: 9 });
    expect((await join(3)).gap).toEqual({ from: 4, to: 8 });
    expect((await join(8)).gap).toBeUndefined();
    expect((await join()).gap).toBeUndefined();
  });

  test('is not read when nobody follows, and read again from where the log is then', async () => {
    const { append, readers, feed, settle, join } = setup({ stored: 2 });
    (await join()).end('slow');
    await feed.whenEnded();
    expect(readers.map(({ stopped }) => stopped)).toEqual([true]);
    append(2);
    const next = await join();
    append(1);
    await settle();
    expect(next.heard).toEqual([5]);
  });

  test('lets in no more than 100 who read their past', async () => {
    const { join } = setup({ stored: 5 });
    for (let n = 0; n < 100; n += 1) await join(1);
    await expect(join(1)).rejects.toMatchObject({ code: 'rate_limited' });
    await join();
  });

  test('tells everyone each event once and in order, however appends, readers and clients alternate', async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('append' as const), n: fc.integer({ min: 1, max: 5 }) }),
      fc.record({ kind: fc.constant('deliver' as const), n: fc.nat(5) }),
      fc.record({ kind: fc.constant('join' as const), n: fc.nat(30) }),
      fc.record({ kind: fc.constant('now' as const), n: fc.nat(1) }),
      fc.record({ kind: fc.constant('block' as const), n: fc.nat(5) }),
      fc.record({ kind: fc.constant('take' as const), n: fc.nat(5) }),
      fc.record({ kind: fc.constant('leave' as const), n: fc.nat(5) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const { append, readers, feed, settle, join } = setup({ stored: 10 });
        let stored = 10;
        const clients: { readonly client: HandClient; readonly after: number; readonly tenant?: string }[] =
          [];
        for (const { kind, n } of steps) {
          const client = clients[n % Math.max(1, clients.length)]?.client;
          if (kind === 'append') {
            append(n);
            stored += n;
          } else if (kind === 'deliver') readers[n % Math.max(1, readers.length)]?.deliver(3);
          else if (kind === 'join') {
            const tenant = n % 3 === 0 ? { tenant: 'acme' } : {};
            clients.push({ client: await join(n, tenant.tenant), after: n, ...tenant });
          } else if (kind === 'now') clients.push({ client: await join(), after: stored });
          else if (kind === 'block' && client !== undefined) client.blocked = true;
          else if (kind === 'take') client?.take();
          else if (client?.ended === undefined) client?.end('shutting_down');
          await nextTurn();
        }
        for (const { client } of clients) client.take();
        await settle();
        for (const { client, after, tenant } of clients) {
          const all = upTo(after + 1, stored).filter((seq) => tenant === undefined || seq % 2 === 0);
          expect(client.heard).toEqual(client.ended === undefined ? all : all.slice(0, client.heard.length));
        }
        for (const { client } of clients) if (client.ended === undefined) client.end('shutting_down');
        await feed.whenEnded();
        expect(readers.filter(({ stopped }) => !stopped)).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });
});
