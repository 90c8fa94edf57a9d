import { afterEach, beforeEach, expect, it } from 'vitest';
import type { WhyAnswer } from '../../src/dispatch/answers.ts';
import { createDispatcher, type Dispatcher } from '../../src/dispatch/dispatcher.ts';
import { createLogger, silentLogger } from '../../src/observe/log.ts';
import { openRegistry, type Registry } from '../../src/registry/registry.ts';
import { eventually } from '../support/eventually.ts';
import { testNamespace } from '../support/servers.ts';
import { openTaskWorld, type TaskWorld, TENANT, TYPE } from '../support/task-world.ts';

const logger = createLogger({ logLevel: 'warn' });
const createdAt = '2026-01-01T00:00:00.000Z';
let worlds = 0;
let world: TaskWorld;
let registry: Registry;
let dispatchers: Dispatcher[];

beforeEach(async () => {
  worlds += 1;
  dispatchers = [];
  world = await openTaskWorld(testNamespace(import.meta.url).replace(/_$/, `${worlds}_`), {
    // Long enough for a leader that the machine holds up: nobody takes over but from one that has stopped.
    leaderLeaseMs: 20_000,
  });
  registry = openRegistry({ nc: world.nc, names: world.names, logger: silentLogger });
  await registry.start();
});
afterEach(async () => {
  for (const dispatcher of dispatchers) await dispatcher.stop();
  await registry.stop();
  await world.stop();
});

async function dispatch(): Promise<Dispatcher> {
  const { nc, log, clock } = await world.connect();
  const { names, config } = world;
  const dispatcher = createDispatcher({ nc, log, names, config, clock, logger });
  dispatchers.push(dispatcher);
  await dispatcher.start();
  return dispatcher;
}

async function why(taskId: string): Promise<WhyAnswer['facts']> {
  const asked = world.names.explain(world.config.dispatchGroup);
  const answer = await world.nc.request(asked, JSON.stringify({ tenant: TENANT, taskId }), {
    timeout: 20_000,
  });
  return answer.json<WhyAnswer>().facts;
}

it('keeps a limit that was set before it started, over a failover, and lifts it at once', async () => {
  await registry.tenants.put({ name: TENANT, createdAt, limits: { concurrency: 2 } });
  const first = await dispatch();
  await first.whenLeader();
  const ids = await Promise.all([1, 2, 3, 4].map(() => world.ingest()));
  await eventually(() => expect(world.count('QUEUED')).toBe(2));
  const second = await dispatch();
  await first.stop();
  await second.whenLeader();
  const held = ids.find((id) => !world.kindsOf(id).includes('QUEUED')) ?? '';
  expect(await why(held)).toContainEqual({ kind: 'limit', limit: 'tenant_concurrency', value: 2 });
  expect(world.count('QUEUED')).toBe(2);
  await registry.tenants.put({ name: TENANT, createdAt });
  await eventually(() => expect(world.count('QUEUED')).toBe(4));
});

it('holds back what is paused, says by whom and why, and goes on when the pause is over', async () => {
  const dispatcher = await dispatch();
  await dispatcher.whenLeader();
  const pause = { reason: 'the bank is down', actor: 'key:1', at: createdAt };
  await registry.pauses.put({ type: TYPE }, { ...pause, until: new Date(Date.now() + 60_000).toISOString() });
  let id = await world.ingest();
  await eventually(async () => {
    // The pause may come a little later than the first task: then that one was not held.
    if (world.kindsOf(id).includes('QUEUED')) id = await world.ingest();
    expect(await why(id)).toMatchObject([{ kind: 'paused', type: TYPE, ...pause }]);
  });
  await registry.pauses.put({ type: TYPE }, { ...pause, until: new Date(Date.now() + 200).toISOString() });
  await eventually(() => expect(world.kindsOf(id)).toContain('QUEUED'));
});
