import { afterEach, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startNodeProcess } from '../support/node-process.ts';
import { testNamespace, testNatsUrl } from '../support/servers.ts';
import { openTaskWorld } from '../support/task-world.ts';

const LEASE_MS = 3_000;
const stops: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

it('a dispatcher that is paused past its lease and goes on doubles nothing beside the one that took over', async () => {
  const prefix = testNamespace(import.meta.url);
  const world = await openTaskWorld(prefix, { leaderLeaseMs: LEASE_MS });
  stops.push(() => world.stop());
  const dispatcher = () => {
    const process = startNodeProcess('src/main.ts', ['dispatcher'], {
      NATS_URL: testNatsUrl(),
      TASKLEDGER_PREFIX: prefix,
      TASKLEDGER_LEADER_LEASE_MS: String(LEASE_MS),
    });
    stops.push(() => process.stop('SIGKILL'));
    return process;
  };
  const first = dispatcher();
  await first.logged('leading', 60_000);
  const second = dispatcher();
  await second.logged('started', 60_000);
  await world.work(({ attempt, id }) => (attempt === 1 && id < '4' ? 'fail' : 'complete'), 4);
  const policy = { backoff: { kind: 'fixed', baseMs: 300 } } as const;
  const submit = (count: number) =>
    Promise.all(Array.from({ length: count }, () => world.ingest({ policy })));

  const submitted = (await submit(300)).length;
  await eventually(() => expect(world.count('COMPLETED')).toBeGreaterThan(20));
  // In the middle of its appends: those decided go out when it wakes, beside the decisions of the new leader.
  process.kill(first.pid, 'SIGSTOP');
  const more = (await submit(300)).length;
  await second.logged('leading', 60_000);
  await eventually(() => expect(world.count('COMPLETED')).toBeGreaterThan(100), { timeoutMs: 60_000 });
  process.kill(first.pid, 'SIGCONT');
  const rest = (await submit(300)).length;

  const total = submitted + more + rest;
  await eventually(() => expect(world.count('COMPLETED')).toBe(total), { timeoutMs: 60_000 });
  await first.logged('no longer leading');
  for (const [id, events] of world.book) {
    const kinds = events.map(({ event }) => event.kind);
    const count = (kind: string): number => kinds.filter((other) => other === kind).length;
    expect({ id, queued: count('QUEUED'), completed: count('COMPLETED') }).toEqual({
      id,
      queued: count('CLAIMED'),
      completed: 1,
    });
  }
});
