import { jetstreamManager, type StreamConfig } from '@nats-io/jetstream';
import { afterEach, describe, expect, test } from 'vitest';
import { OLDEST, QUIETEST, unfinishedTasks } from '../../projections/tasks/unfinished.ts';
import { createHealth } from '../../src/http/health.ts';
import { ensureStreams } from '../../src/log/streams.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { createStreamsDesk } from '../../src/retention/desk.ts';
import { createNeedsReporter } from '../../src/retention/needs-reporter.ts';
import { openRetentionRecords, type Watch } from '../../src/retention/records.ts';
import { refuseLoss } from '../../src/retention/shrinking.ts';
import { createRetentionWatch } from '../../src/retention/watch.ts';
import { eventually } from '../support/eventually.ts';
import { randomLives } from '../support/random-lives.ts';
import { alarmsOf, openLogGround, openModelDatabase, recordingLogger } from '../support/read-models.ts';
import { testNamespace } from '../support/servers.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const DAY_MS = 24 * 3_600_000;
/** Passes are asked for by the tests. */
const NEVER_MS = 3_600_000;
const EVENTS = randomLives({ seed: 31, tasks: 20, events: 1_500 });

let grounds = 0;
/** A log with 1000 events, or as many as are said. `ahead` moves the clock of whoever judges. */
async function setup(events = 1_000) {
  grounds += 1;
  const ground = await openLogGround(testNamespace(import.meta.url).replace('_', `${grounds}_`));
  closers.push(() => ground.stop());
  const { nc, names } = ground;
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const lastSeq = await ground.append(EVENTS.slice(0, events));
  if (events > 0) await drawn(lastSeq);
  let aheadMs = 0;
  const clock = { now: () => Date.now() + aheadMs };
  const config = { ...ground.config, retentionCheckMs: NEVER_MS };
  const logger = recordingLogger();
  const watch = createRetentionWatch({ nc, names, config, clock, logger });
  await watch.start();
  closers.push(() => watch.stop());
  const streams = createStreamsDesk(openRetentionRecords({ nc, names, logger: silentLogger }));
  await streams.start();
  closers.push(() => streams.stop());

  async function drawn(seq: number): Promise<void> {
    await eventually(async () => {
      const { last_seq: copied } = (await jsm.streams.info(names.streams.history)).state;
      const last = copied === 0 ? null : await jsm.streams.getMessage(names.streams.history, { seq: copied });
      return last?.header.get('Nats-Stream-Source').split(' ')[1] === String(seq);
    });
  }
  return {
    ...ground,
    append: (events: typeof EVENTS) => ground.append(events),
    jsm,
    clock,
    config,
    logger,
    drawn,
    watch,
    streams,
    history: names.streams.history,
    ahead: (ms: number) => {
      aheadMs = ms;
    },
    look: () => eventually(async () => (await watch.runOnce()) ?? false),
    change: (over: Partial<StreamConfig>) => jsm.streams.update(names.streams.history, over),
  };
}

const foundIn = ({ findings }: Watch) =>
  findings.map(({ what, fromSeq, toSeq, historySeq }) => ({ what, fromSeq, toSeq, historySeq }));

describe('HISTORY', () => {
  test('that has every event is passed, and the next pass goes on where the last one was', async () => {
    const { look, append, drawn, streams, nc, names } = await setup();
    expect(await look()).toMatchObject({ sourceSeq: 1_000, findings: [], lag: 0 });
    await drawn(await append(EVENTS.slice(1_000, 1_200)));
    expect(await look()).toMatchObject({ sourceSeq: 1_200, findings: [] });
    const { checks } = await createHealth({ nc, names, streams }).check();
    expect(checks.streams).toEqual({ ok: true });
  });

  test('that is empty lacks nothing, and is compared from its first event on', async () => {
    const { look, append, drawn } = await setup(0);
    expect(await look()).toMatchObject({ sourceSeq: 0, findings: [], lag: 0 });
    await drawn(await append(EVENTS.slice(0, 100)));
    expect(await look()).toMatchObject({ sourceSeq: 100, findings: [] });
  });

  test('that has lost an event is told of with its position, until an operator accepts it', async () => {
    const { look, jsm, history, streams, nc, names, logger } = await setup();
    await look();
    await jsm.streams.deleteMessage(history, 417);
    expect(foundIn(await look())).toEqual([{ what: 'deleted', fromSeq: 417, toSeq: 417, historySeq: 417 }]);
    expect(alarmsOf(logger)).toEqual(['history']);
    const health = createHealth({ nc, names, streams });
    await eventually(async () => (await health.check()).checks.streams?.ok === false);
    expect((await health.check()).checks.streams?.detail).toContain('events 417 to 417 are deleted');
    await streams.acceptFindings();
    expect(streams.report().history).toMatchObject({ findings: [], accepted: 1 });
    await eventually(async () => (await look()).accepted === 1);
    expect(foundIn(await look())).toEqual([]);
    await eventually(async () => (await health.check()).checks.streams?.ok === true);
  });

  test('that has an event twice is told of with its position, without an alarm: readers take it once', async () => {
    const { look, change, nc, names, append, drawn, logger, streams } = await setup();
    await look();
    // The server takes a source with another filter for another source.
    const { tasks } = names.streams;
    await change({ sources: [{ name: tasks, filter_subject: names.allTasks, opt_start_seq: 1_000 }] });
    await drawn(await append(EVENTS.slice(1_000, 1_100)));
    const seen = await look();
    expect(foundIn(seen)).toEqual([{ what: 'doubled', fromSeq: 1_000, toSeq: 1_000, historySeq: 1_001 }]);
    expect(seen.sourceSeq).toBe(1_100);
    await eventually(() => streams.report().history?.findings.length === 1);
    expect(alarmsOf(logger)).toEqual([]);
    expect((await createHealth({ nc, names, streams }).check()).checks.streams?.ok).toBe(true);
  });

  test('that has left out events is told of with their positions', async () => {
    const { look, change, jsm, history, names, append, drawn } = await setup();
    await look();
    const { sources } = (await jsm.streams.info(history)).config;
    await change({ sources: [] });
    const lastSeq = await append(EVENTS.slice(1_000, 1_100));
    expect(await look()).toMatchObject({ lag: 100, findings: [] });
    await jsm.streams.purge(names.streams.tasks, { seq: 1_071 });
    await change({ sources: sources ?? [] });
    await drawn(lastSeq);
    const seen = await look();
    expect(foundIn(seen)).toEqual([{ what: 'missing', fromSeq: 1_001, toSeq: 1_070, historySeq: 1_001 }]);
  });

  test('that draws nothing any more is told of', async () => {
    const { look, change, append, ahead, logger, streams } = await setup();
    await change({ sources: [] });
    await append(EVENTS.slice(1_000, 1_100));
    await look();
    await look();
    ahead(61_000);
    await look();
    expect(alarmsOf(logger)).toEqual(['history_stalled']);
    await eventually(() => streams.trouble()?.includes('has not drawn the last 100 events') === true);
  });
});

describe('what is needed', () => {
  async function reported(seqs: { upTo: number }) {
    const world = await setup();
    const { nc, names, config, clock } = world;
    const database = await openModelDatabase(import.meta.url);
    closers.push(() => database.close());
    const projector = world.projector(database.pool);
    closers.push(() => projector.stop());
    await projector.start();
    await projector.whenCaughtUp(seqs.upTo);
    const reporter = createNeedsReporter({
      nc,
      names,
      config,
      clock,
      logger: silentLogger,
      position: () => Math.min(...Object.values(projector.stats().positions)),
      unfinished: () => unfinishedTasks(database.pool),
    });
    await reporter.start();
    closers.push(() => reporter.stop());
    await reporter.runOnce();
    return { ...world, projector, database, reporter };
  }
  type Judging = Pick<Awaited<ReturnType<typeof setup>>, 'nc' | 'names' | 'config' | 'clock'>;
  const shrink = ({ nc, names, config, clock }: Judging, over: object) =>
    ensureStreams({
      nc,
      names,
      config: { ...config, ...over },
      logger: silentLogger,
      beforeShrinking: refuseLoss({ nc, names, config, clock, logger: silentLogger }),
    });

  test('is found by a look into an index each, however many tasks wait', async () => {
    const database = await openModelDatabase(import.meta.url);
    closers.push(() => database.close());
    const client = await database.pool.connect();
    try {
      await client.query('begin; set local enable_seqscan = off; set local enable_sort = off');
      const explained = async (text: string) =>
        JSON.stringify((await client.query(`explain (format json) ${text}`)).rows);
      expect(await explained(OLDEST)).toContain('"Index Name":"tasks_unfinished_first"');
      expect(await explained(QUIETEST)).toContain('"Index Name":"tasks_unfinished_last"');
      await client.query('rollback');
    } finally {
      client.release();
    }
  });

  test('by an unfinished task is not taken by a shorter limit, and is told of before the limit bites', async () => {
    const world = await reported({ upTo: 1_000 });
    const { look, ahead, streams, jsm, history, logger } = world;
    const oldest = await unfinishedTasks(world.database.pool);
    expect(oldest.oldest?.seq).toBeLessThan(1_000);
    expect((await look()).dangers).toEqual([]);
    ahead(300 * DAY_MS);
    await world.reporter.runOnce();
    // Whoever looks may be about to hear of the last report.
    const dangers = await eventually(async () => {
      const seen = (await look()).dangers;
      expect(seen).toContainEqual({
        stream: history,
        limit: 'max_age',
        seq: oldest.oldest?.seq,
        why: `task ${oldest.oldest?.taskId} of ${oldest.oldest?.tenant}, which began there, has not ended`,
      });
      return seen;
    });
    expect(dangers.map(({ limit, stream }) => `${limit} ${stream}`)).toContain(
      `max_age ${world.names.streams.tasks}`,
    );
    expect(alarmsOf(logger)).toContain('retention');
    await eventually(() => streams.trouble()?.includes('is about to take event') === true);

    const before = (await jsm.streams.info(history)).config;
    await expect(shrink(world, { historyDays: 200 })).rejects.toMatchObject({
      code: 'retention_needed',
      details: { limit: 'max_age', stream: history, seq: oldest.oldest?.seq },
    });
    await expect(shrink(world, { historyBytes: 1_000 })).rejects.toMatchObject({
      code: 'retention_needed',
      details: { limit: 'max_bytes' },
    });
    expect((await jsm.streams.info(history)).config.max_age).toBe(before.max_age);
    await shrink(world, { historyDays: 301 });
    expect((await jsm.streams.info(history)).config.max_age).toBe(301 * DAY_MS * 1e6);
  });

  test('by a projector that has stopped is not taken either', async () => {
    const world = await reported({ upTo: 1_000 });
    const { look, ahead, projector, append, drawn, history, database } = world;
    await database.pool.query(`update tasks set status = 'COMPLETED'`);
    await world.reporter.runOnce();
    await projector.stop();
    await drawn(await append(EVENTS.slice(1_000)));
    ahead(300 * DAY_MS);
    // Whoever looks may be about to hear of the last report.
    await eventually(async () =>
      expect((await look()).dangers).toEqual([
        {
          stream: history,
          limit: 'max_age',
          seq: 1_001,
          why: 'the read models reflect nothing after 1000',
        },
      ]),
    );
    await expect(shrink(world, { historyDays: 200 })).rejects.toMatchObject({
      code: 'retention_needed',
      details: { seq: 1_001 },
    });
    const warned = { ...world, config: { ...world.config, retentionGuard: 'warn' as const } };
    await shrink(warned, { historyDays: 200 });
  });
});
