import { jetstreamManager } from '@nats-io/jetstream';
import type pg from 'pg';
import { afterEach, describe, expect, test } from 'vitest';
import type { Projection } from '../../projections/engine/projection.ts';
import { projections } from '../../projections/projections.ts';
import type { Recorded } from '../../src/domain/events.ts';
import { loadConfig } from '../../src/platform/config.ts';
import { createPool } from '../../src/platform/postgres.ts';
import { eventually } from '../support/eventually.ts';
import { randomLives } from '../support/random-lives.ts';
import {
  alarmsOf,
  type LogGround,
  type ModelDatabase,
  openLogGround,
  openModelDatabase,
  recordingLogger,
} from '../support/read-models.ts';
import { testNamespace } from '../support/servers.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

const MODELS = ['audit', 'dead_letters', 'queues', 'tasks'];
const KEEP = { auditDays: 3_650 };
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

let grounds = 0;
async function setup(): Promise<{ ground: LogGround; database: ModelDatabase }> {
  const database = await openModelDatabase(import.meta.url);
  closers.push(() => database.close());
  grounds += 1;
  const ground = await openLogGround(testNamespace(import.meta.url).replace('_', `${grounds}_`));
  closers.push(() => ground.stop());
  return { ground, database };
}

/** What one undisturbed projector makes of the log, in a database of its own. */
async function undisturbed(ground: LogGround, lastSeq: number): Promise<Record<string, string>> {
  const database = await openModelDatabase(import.meta.url);
  closers.push(() => database.close());
  const projector = ground.projector(database.pool);
  await projector.start();
  await projector.whenCaughtUp(lastSeq);
  await projector.stop();
  return database.hashes();
}

describe('a projector', () => {
  test('applies each event exactly once though its connection dies in the middle of transactions', async () => {
    const { ground, database } = await setup();
    let transactions = 0;
    const deadly: Projection<readonly Recorded[]> = {
      name: 'deadly',
      apply: (batch) => batch,
      async write(client) {
        transactions += 1;
        if (transactions % 3 === 0) await client.query('select pg_terminate_backend(pg_backend_pid())');
      },
    };
    const projector = ground.projector(database.pool, {
      projections: [...projections(KEEP), deadly],
      config: { projectorBatchEvents: 50 },
    });
    const lastSeq = await ground.append(randomLives({ seed: 1, tasks: 50, events: 1_000 }));
    await projector.start();
    await projector.whenCaughtUp(lastSeq);
    expect(transactions).toBeGreaterThan(25);
    expect(await database.hashes()).toEqual(await undisturbed(ground, lastSeq));
    expect(projector.stats()).toMatchObject({ lag: 0, poisoned: 0, outage: undefined });
  });

  test('applies each event exactly once though it does not hear that it has committed', async () => {
    const { ground, database } = await setup();
    let unheard = 0;
    const deafPool = new Proxy(database.pool, {
      get(pool, key) {
        if (key !== 'connect') return Reflect.get(pool, key, pool);
        return async () => deafened(await pool.connect(), () => (unheard += 1));
      },
    });
    const projector = ground.projector(deafPool, { config: { projectorBatchEvents: 50 } });
    const lastSeq = await ground.append(randomLives({ seed: 15, tasks: 50, events: 1_000 }));
    await projector.start();
    await projector.whenCaughtUp(lastSeq);
    expect(unheard).toBeGreaterThanOrEqual(5);
    expect(await database.hashes()).toEqual(await undisturbed(ground, lastSeq));
  });

  test('rebuilds from nothing what it had built event by event', async () => {
    const { ground, database } = await setup();
    const projector = ground.projector(database.pool);
    await projector.start();
    let lastSeq = 0;
    const events = randomLives({ seed: 2, tasks: 30, events: 1_000 });
    for (let from = 0; from < events.length; from += 50) {
      lastSeq = await ground.append(events.slice(from, from + 50));
      await projector.whenCaughtUp(lastSeq);
    }
    expect(projector.stats().batches).toBeGreaterThanOrEqual(20);
    expect(await database.hashes()).toEqual(await undisturbed(ground, lastSeq));
  });

  test('resumes where another process stopped', async () => {
    const { ground, database } = await setup();
    const events = randomLives({ seed: 3, tasks: 30, events: 1_000 });
    const first = ground.projector(database.pool);
    await first.start();
    await first.whenCaughtUp(await ground.append(events.slice(0, 500)));
    await first.stop();
    const lastSeq = await ground.append(events.slice(500));
    const second = ground.projector(database.pool);
    await second.start();
    await second.whenCaughtUp(lastSeq);
    expect(await database.hashes()).toEqual(await undisturbed(ground, lastSeq));
  });

  test('announces the position that it has committed', async () => {
    const { ground, database } = await setup();
    const announced: unknown[] = [];
    ground.nc.subscribe(ground.names.projectionPosition('audit'), {
      callback: (_, message) => void announced.push((message.json() as { position: number }).position),
    });
    const projector = ground.projector(database.pool);
    await projector.start();
    const lastSeq = await ground.append(randomLives({ seed: 4, tasks: 3, events: 20 }));
    await projector.whenCaughtUp(lastSeq);
    await eventually(() => announced.at(-1) === lastSeq);
  });

  test('waits through an outage of Postgres, says so once, and catches up', async () => {
    const { ground, database } = await setup();
    const target = new URL(database.url);
    const proxy = await startTcpProxy({ host: target.hostname, port: Number(target.port) });
    closers.push(() => proxy.close());
    target.hostname = '127.0.0.1';
    target.port = String(proxy.port);
    const pool = createPool({ ...loadConfig({}), databaseUrl: target.href }, 'test');
    closers.push(() => pool.end());
    const logger = recordingLogger();
    proxy.cut();
    const projector = ground.projector(pool, { logger });
    closers.push(() => projector.stop());
    await projector.start();
    const events = randomLives({ seed: 5, tasks: 30, events: 600 });
    await ground.append(events.slice(0, 300));
    await eventually(() => projector.stats().outage !== undefined);
    proxy.pass();
    await projector.whenCaughtUp(300);
    proxy.cut();
    const lastSeq = await ground.append(events.slice(300));
    await eventually(() => projector.stats().outage !== undefined);
    proxy.pass();
    await projector.whenCaughtUp(lastSeq);
    expect(await database.hashes()).toEqual(await undisturbed(ground, lastSeq));
    expect(logger.lines.filter(({ level }) => level === 'error')).toHaveLength(2);
    expect(logger.lines.filter(({ message }) => message === 'Postgres can be written again')).toHaveLength(2);
  });
});

describe('two projectors', () => {
  test('apply each event once between them, and one stands by', async () => {
    const { ground, database } = await setup();
    const config = { projectorBatchEvents: 50 };
    const pair = [1, 2].map(() => ground.projector(database.pool, { config }));
    await Promise.all(pair.map((projector) => projector.start()));
    const lastSeq = await ground.append(randomLives({ seed: 6, tasks: 50, events: 4_000 }));
    await Promise.all(pair.map((projector) => projector.whenCaughtUp(lastSeq)));
    expect(await database.hashes()).toEqual(await undisturbed(ground, lastSeq));
    expect(pair.map((projector) => projector.stats().mode).sort()).toEqual(['leading', 'standby']);
  });

  test('take over from each other', async () => {
    const { ground, database } = await setup();
    const pair = [1, 2].map(() => ground.projector(database.pool));
    await Promise.all(pair.map((projector) => projector.start()));
    const events = randomLives({ seed: 7, tasks: 20, events: 400 });
    let sent = 0;
    // Who has nothing to do does not know yet that it will lose.
    while (!pair.some((projector) => projector.stats().mode === 'standby')) {
      const seq = await ground.append(events.slice(sent, sent + 1));
      sent += 1;
      await Promise.all(pair.map((projector) => projector.whenCaughtUp(seq)));
    }
    const leader = pair.find((projector) => projector.stats().mode === 'leading');
    const standby = pair.find((projector) => projector.stats().mode === 'standby');
    await leader?.stop();
    const lastSeq = await ground.append(events.slice(sent));
    await standby?.whenCaughtUp(lastSeq);
    expect(standby?.stats().mode).toBe('leading');
    expect(await database.hashes()).toEqual(await undisturbed(ground, lastSeq));
  });
});

describe('what cannot be digested', () => {
  test('is set aside with an alarm, and everything else is applied', async () => {
    const { ground, database } = await setup();
    const events = randomLives({ seed: 8, tasks: 20, events: 500 });
    const at = events.findIndex(({ event }, index) => index >= 250 && event.kind === 'CLAIMED');
    const broken = { ...events[at]?.event, priority: 1e9 } as Recorded['event'];
    const logger = recordingLogger();
    await ground.append(events.slice(0, at));
    const poisonSeq = await ground.append([{ seq: 0, storedAt: 0, event: broken }]);
    const unreadableSeq = await ground.appendText('{"v":99}\0');
    const lastSeq = await ground.append(events.slice(at + 1));
    const projector = ground.projector(database.pool, { logger });
    await projector.start();
    await projector.whenCaughtUp(lastSeq);
    const { rows } = await database.pool.query(
      'select projection, seq::int, event, error from projection_poison order by seq, projection',
    );
    expect(rows).toEqual([
      // A claim says nothing to the dead letters.
      ...MODELS.filter((model) => model !== 'dead_letters').map((projection) => ({
        projection,
        seq: poisonSeq,
        event: JSON.stringify(broken),
        error: expect.stringContaining('out of range'),
      })),
      ...MODELS.map((projection) => ({
        projection,
        seq: unreadableSeq,
        event: '{"v":99}\uFFFD',
        error: 'not JSON',
      })),
    ]);
    expect(alarmsOf(logger)).toEqual(Array(2 * MODELS.length - 1).fill('poison'));
    const { rows: recorded } = await database.pool.query('select count(*)::int as n from audit');
    expect(recorded).toEqual([{ n: lastSeq - 2 }]);
  });

  test('may be the first of very many rows on their way', async () => {
    const { ground, database } = await setup();
    const events = randomLives({ seed: 16, tasks: 20, events: 400 }).map(({ event, ...rest }) => ({
      ...rest,
      event: { ...event, data: { ...event.data, filler: 'x'.repeat(5_000) } } as unknown as Recorded['event'],
    }));
    const [first] = events;
    if (first !== undefined) events[0] = { ...first, event: { ...first.event, attempt: 1e12 } };
    const audit = projections(KEEP).filter(({ name }) => name === 'audit');
    const lastSeq = await ground.append(events);
    const projector = ground.projector(database.pool, { projections: audit });
    await projector.start();
    await projector.whenCaughtUp(lastSeq);
    const { rows } = await database.pool.query(
      'select min(seq)::int as first, count(*)::int as n from audit',
    );
    expect(rows).toEqual([{ first: 2, n: 399 }]);
    expect(projector.stats().poisoned).toBe(1);
  });

  test('by one read model is still applied to the others', async () => {
    const { ground, database } = await setup();
    const picky: Projection<readonly Recorded[]> = {
      name: 'picky',
      apply(batch) {
        if (batch.some(({ seq }) => seq === 7)) throw new Error('no sevens');
        return batch;
      },
      async write() {},
    };
    const projector = ground.projector(database.pool, {
      projections: [...projections(KEEP), picky],
    });
    await projector.start();
    await projector.whenCaughtUp(await ground.append(randomLives({ seed: 9, tasks: 5, events: 30 })));
    const { rows } = await database.pool.query('select projection, seq::int, error from projection_poison');
    expect(rows).toEqual([{ projection: 'picky', seq: 7, error: 'picky: no sevens' }]);
    const { rows: recorded } = await database.pool.query('select count(*)::int as n from audit');
    expect(recorded).toEqual([{ n: 30 }]);
  });

  test('does not include text that Postgres cannot hold', async () => {
    const { ground, database } = await setup();
    const events = randomLives({ seed: 10, tasks: 1, events: 1 });
    const odd = events.map(({ event, ...rest }) => ({
      ...rest,
      event: {
        ...event,
        actor: { ...event.actor, id: 'nul\0 surrogate\ud800' },
        data: { ...event.data, payload: 'nul\0 surrogate\ud800' },
      } as Recorded['event'],
    }));
    const projector = ground.projector(database.pool);
    await projector.start();
    await projector.whenCaughtUp(await ground.append(odd));
    expect(projector.stats().poisoned).toBe(0);
    const { rows } = await database.pool.query('select actor_id, data from audit');
    expect(rows).toMatchObject([
      { actor_id: 'nul\uFFFD surrogate\uFFFD', data: { payload: 'nul\0 surrogate\ud800' } },
    ]);
  });
});

describe('a log that is not what it was', () => {
  test('ends before the checkpoint: the projections stop with a clear error, and nothing is overwritten', async () => {
    const { ground, database } = await setup();
    const events = randomLives({ seed: 12, tasks: 10, events: 100 });
    const before = ground.projector(database.pool);
    await before.start();
    await before.whenCaughtUp(await ground.append(events));
    await before.stop();
    const hashes = await database.hashes();
    const jsm = await jetstreamManager(ground.nc);
    const { config } = await jsm.streams.info(ground.names.streams.tasks);
    await jsm.streams.delete(ground.names.streams.tasks);
    await jsm.streams.add(config);
    await ground.append(events.slice(0, 5));

    const logger = recordingLogger();
    const projector = ground.projector(database.pool, { logger });
    await projector.start();
    await eventually(() => projector.stats().mode === 'halted');
    expect(Object.keys(projector.stats().stopped).sort()).toEqual(MODELS);
    expect(projector.stats().stopped['tasks']).toMatch(
      /reflects sequence 100 .* ends at 5 .* lost or replaced/,
    );
    expect(alarmsOf(logger)).toEqual(Array(MODELS.length).fill('backwards'));
    expect(await database.hashes()).toEqual(hashes);
  });

  test('lacks an event in the middle: the gap is reported, and the projections go on', async () => {
    const { ground, database } = await setup();
    const events = randomLives({ seed: 13, tasks: 10, events: 100 });
    const lastSeq = await ground.append(events);
    const jsm = await jetstreamManager(ground.nc);
    await jsm.streams.deleteMessage(ground.names.streams.tasks, 40);
    const logger = recordingLogger();
    const projector = ground.projector(database.pool, { logger });
    await projector.start();
    await projector.whenCaughtUp(lastSeq);
    expect(
      logger.lines.filter(({ fields }) => fields['alarm'] === 'gap').map(({ fields }) => fields),
    ).toEqual([{ alarm: 'gap', stream: 'tasks', from: 40, to: 40 }]);
    const { rows } = await database.pool.query('select count(*)::int as n from audit');
    expect(rows).toEqual([{ n: 99 }]);
  });

  test('has lost its beginning to the hot window: HISTORY fills in', async () => {
    const { ground, database } = await setup();
    const lastSeq = await ground.append(randomLives({ seed: 14, tasks: 20, events: 300 }));
    const jsm = await jetstreamManager(ground.nc);
    await eventually(
      async () => (await jsm.streams.info(ground.names.streams.history)).state.messages === lastSeq,
    );
    const live = await openModelDatabase(import.meta.url);
    closers.push(() => live.close());
    const early = ground.projector(live.pool);
    await early.start();
    await early.whenCaughtUp(lastSeq);
    await early.stop();
    await jsm.streams.purge(ground.names.streams.tasks, { seq: 201 });
    const logger = recordingLogger();
    const projector = ground.projector(database.pool, { logger });
    await projector.start();
    await projector.whenCaughtUp(lastSeq);
    expect(alarmsOf(logger)).toEqual(['hot_window']);
    for (const sql of [
      'select seq, event_id, kind, at, data::text from audit order by seq',
      'select id, tenant, status, seq, submitted_seq, updated_at, finished_at, payload::text from tasks order by id',
      'select * from queues where count > 0 order by tenant, type, priority, status',
    ]) {
      expect((await database.pool.query(sql)).rows).toEqual((await live.pool.query(sql)).rows);
    }
  });
});

/** A connection on which every fourth COMMIT happens and is not heard of. */
function deafened(client: pg.PoolClient, onUnheard: () => void): pg.PoolClient {
  let commits = 0;
  return new Proxy(client, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== 'function') return value;
      if (key !== 'query') return value.bind(target);
      return (...args: unknown[]): unknown => {
        const result: unknown = value.apply(target, args);
        if (args[0] !== 'commit' || ++commits % 4 !== 0) return result;
        return (result as Promise<unknown>).then(() => {
          onUnheard();
          throw new Error('Connection terminated unexpectedly');
        });
      };
    },
  });
}
