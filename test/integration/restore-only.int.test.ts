import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { afterEach, expect, test } from 'vitest';
import { backUp } from '../../src/backup/backup.ts';
import { restore } from '../../src/backup/restore.ts';
import { createDispatcher } from '../../src/dispatch/dispatcher.ts';
import { createWorker } from '../../src/index.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { openRegistry } from '../../src/registry/registry.ts';
import { cli } from '../support/command-line.ts';
import { eventually } from '../support/eventually.ts';
import { gate } from '../support/gate.ts';
import { testNamespace, testNatsUrl } from '../support/servers.ts';
import { openTaskWorld, TYPE } from '../support/task-world.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** However much else the machine does. */
const WITHIN = { timeoutMs: 60_000 };
const SETTINGS = { ackWaitMs: 2_000, leaderLeaseMs: 1_500 };

/** An installation with settings of every kind, a folder for its backup, and how to lose parts of it. */
async function setup(suffix: string) {
  const prefix = testNamespace(import.meta.url).replace('_', `${suffix}_`);
  const dir = await mkdtemp(join(tmpdir(), 'taskledger-restore-'));
  closers.push(() => rm(dir, { recursive: true, force: true }));
  const world = await openTaskWorld(prefix, SETTINGS);
  closers.push(() => world.stop());
  const { nc, names } = world;
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const registry = await start(openRegistry({ nc, names, logger: silentLogger }));
  await registry.tenants.put({ name: 'acme', createdAt: '2026-01-01T00:00:00.000Z' });
  await registry.types.put({ type: TYPE, priority: 1 });
  await registry.pauses.put({ type: 'other' }, PAUSE);
  const { key } = await registry.keys.create({ tenant: 'acme', scopes: ['submit'], name: 'one' });
  const parts = { nc, names, config: world.config, dir: join(dir, 'b1') };
  return {
    world,
    jsm,
    registry,
    key,
    prefix,
    parts,
    backUp: () => backUp({ ...parts, now: Date.parse('2026-01-02T00:00:00Z') }),
    lose: (...streams: string[]) => Promise.all(streams.map((stream) => jsm.streams.delete(stream))),
    restoreOnly: (...only: string[]) => restore({ ...parts, only }),
    cli: (args: string) =>
      cli(args, [], { env: { TASKLEDGER_PREFIX: prefix, NATS_URL: testNatsUrl() }, columns: 120 }),
  };
}

const PAUSE = { reason: 'the bank is down', actor: 'test', at: '2026-01-01T00:00:00.000Z' };

async function start<S extends { start(): Promise<void>; stop(): Promise<void> }>(service: S): Promise<S> {
  closers.push(() => service.stop());
  await service.start();
  return service;
}

const messagesOf = async (jsm: JetStreamManager, stream: string): Promise<number> =>
  (await jsm.streams.info(stream)).state.messages;

test('buckets that are lost while tasks run are restored alone, and the processes go on with them as they are', async () => {
  const { world, jsm, registry, key, backUp, lose, restoreOnly } = await setup('settings');
  const { nc, names, config } = world;
  const own = await world.connect();
  await start(own.clock);
  await start(createDispatcher({ names, config, logger: silentLogger, ...own }));
  const restored = gate();
  const handler = () => restored.opened.then(() => null);
  await start(
    createWorker({
      nats: testNatsUrl(),
      prefix: names.prefix,
      logger: silentLogger,
      concurrency: 5,
      types: { [TYPE]: handler },
    }),
  );
  const ids: string[] = [];
  for (let n = 0; n < 20; n += 1) ids.push(await world.ingest());
  await eventually(() => world.count('PROCESSING') === 5, WITHIN);
  await backUp();
  await registry.types.put({ type: TYPE, priority: 2 });
  await registry.types.put({ type: 'late', priority: 2 });
  ids.push(await world.ingest());

  const heard: [string, unknown][] = [];
  registry.types.onChange((name, settings) => heard.push([name, settings]));
  const { tenants, types, keys, controls } = names.buckets;
  const { created } = await jsm.streams.info(names.streams.tasks);
  await lose(...[tenants, types, keys, controls].map((bucket) => `KV_${bucket}`));
  await expect(registry.types.put({ type: 'x', priority: 1 })).rejects.toMatchObject({
    code: 'log_unavailable',
  });
  const { steps } = await restoreOnly('tenants', 'types', 'keys', 'controls');
  expect(steps).toHaveLength(4);
  restored.open();

  await eventually(() => ids.every((id) => world.kindsOf(id).at(-1) === 'COMPLETED'), WITHIN);
  for (const id of ids) expect(world.kindsOf(id).filter((kind) => kind === 'COMPLETED')).toHaveLength(1);
  expect((await jsm.streams.info(names.streams.tasks)).created).toBe(created);
  // Nothing was started anew: what was set after the backup is forgotten by whoever knew it.
  await eventually(() => {
    expect(registry.types.list()).toEqual([{ type: TYPE, priority: 1 }]);
    expect(registry.tenants.get('acme')?.createdAt).toBe('2026-01-01T00:00:00.000Z');
    expect(registry.keys.verify(key)?.name).toBe('one');
    expect(registry.pauses.get({ type: 'other' })?.reason).toBe(PAUSE.reason);
  }, WITHIN);
  // And what is in both was never forgotten.
  expect(heard).toEqual([
    [TYPE, { type: TYPE, priority: 1 }],
    ['late', undefined],
  ]);
  await registry.types.put({ type: 'new', priority: 3 });
  const later = await start(openRegistry({ nc, names, logger: silentLogger }));
  expect(later.types.list()).toEqual(registry.types.list());
});

test('HISTORY that is lost is restored alone, and draws from TASKS what came after the backup, once', async () => {
  const { world, jsm, backUp, lose, restoreOnly } = await setup('history');
  const { history, tasks } = world.names.streams;
  const drawn = () =>
    eventually(async () => (await messagesOf(jsm, history)) === (await messagesOf(jsm, tasks)), WITHIN);
  for (let n = 0; n < 5; n += 1) await world.ingest();
  await drawn();
  await backUp();
  for (let n = 0; n < 5; n += 1) await world.ingest();
  await lose(history);
  expect((await restoreOnly('HISTORY')).warnings).toEqual([]);
  await world.ingest();
  await drawn();
  expect(await messagesOf(jsm, history)).toBe(11);
});

test('HISTORY is not restored beside a TASKS that it was not drawn from, nor either of them without the other', async () => {
  const { world, jsm, backUp, lose, restoreOnly, parts } = await setup('other');
  const { history, tasks } = world.names.streams;
  for (let n = 0; n < 5; n += 1) await world.ingest();
  await eventually(async () => (await messagesOf(jsm, history)) === 5, WITHIN);
  await backUp();
  await lose(history, tasks);
  const refusal = (reason: string) => ({
    code: 'restore_inseparable',
    message: expect.stringContaining(reason),
  });
  await expect(restoreOnly('TASKS')).rejects.toMatchObject(refusal('pass over'));
  await expect(restoreOnly('HISTORY')).rejects.toMatchObject(refusal('there is no TASKS'));
  const another = await openTaskWorld(parts.names.prefix, SETTINGS);
  closers.push(() => another.stop());
  await jsm.streams.delete(history);
  await another.ingest();
  await expect(restoreOnly('HISTORY')).rejects.toMatchObject(refusal('ends at event 1'));
  for (let n = 0; n < 5; n += 1) await another.ingest();
  await expect(restoreOnly('HISTORY')).rejects.toMatchObject(refusal('another log'));
});

test('the command says what it would do, refuses what holds something, and replaces what is empty only when told to', async () => {
  const { world, jsm, registry, parts, backUp, lose, cli } = await setup('command');
  const { types, keys } = world.names.buckets;
  await backUp();
  const restoring = (rest: string) => cli(`restore ${parts.dir} ${rest}`);

  const unknown = await restoring('--only types,typos');
  expect([unknown.exit, unknown.err]).toEqual([3, expect.stringContaining('does not hold typos')]);
  expect(unknown.err).toContain('SUBMISSIONS, HISTORY, TASKS, TIMERS, tenants, types, keys, controls');

  const held = await restoring('--only types --replace-empty');
  expect([held.exit, held.err]).toEqual([3, expect.stringContaining(`KV_${types} (${TYPE}; the last of 20`)]);

  await lose(`KV_${types}`, `KV_${keys}`);
  const dry = await restoring('--only types,keys --dry-run --json');
  expect([dry.exit, dry.err]).toEqual([0, '']);
  expect(JSON.parse(dry.out)).toMatchObject({
    takenAt: '2026-01-02T00:00:00.000Z',
    dryRun: true,
    streams: [
      {
        name: `KV_${types}`,
        messages: 1,
        replaces: false,
        behindBy: expect.stringContaining('types set since'),
      },
      {
        name: `KV_${keys}`,
        messages: 1,
        replaces: false,
        behindBy: expect.stringContaining('REVOKED SINCE'),
      },
    ],
    warnings: [],
  });
  await expect(jsm.streams.info(`KV_${types}`)).rejects.toThrow('stream not found');

  const done = await restoring('--only types');
  expect([done.exit, done.out]).toEqual([0, expect.stringContaining('1 streams as of 2026-01-02')]);
  expect(done.err).toContain('types set since are unknown');
  expect(await messagesOf(jsm, `KV_${types}`)).toBe(1);

  await jsm.streams.purge(`KV_${types}`);
  const unasked = await restoring('--only types --json');
  expect([unasked.exit, JSON.parse(unasked.err).error.code]).toEqual([3, 'restore_replaces']);
  expect(await messagesOf(jsm, `KV_${types}`)).toBe(0);
  const replaced = await restoring('--only types --replace-empty');
  expect([replaced.exit, replaced.err]).toEqual([0, expect.stringContaining('will be REPLACED')]);
  await eventually(() => expect(registry.types.get(TYPE)?.priority).toBe(1), WITHIN);
});
