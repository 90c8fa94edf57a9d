import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { silentLogger } from '../../src/observe/log.ts';
import { openRegistry } from '../../src/registry/registry.ts';
import { DefinitionSchema } from '../../src/schedules/schedule.ts';
import { openSchedules } from '../../src/schedules/schedules.ts';
import { eventually } from '../support/eventually.ts';
import { startNodeProcess } from '../support/node-process.ts';
import { testNamespace, testNatsUrl } from '../support/servers.ts';
import { openTaskWorld, type TaskWorld, TENANT, TYPE } from '../support/task-world.ts';

const HOUR_MS = 3_600_000;
/** Far less than the jumps, and more than the machine holds a leader up. */
const LEASE_MS = 15_000;
const JUMPING_CLOCK = fileURLToPath(new URL('../support/jumping-clock.cjs', import.meta.url));
const stops: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** The dispatcher role in a process whose wall clock `jumpTo` sets apart from everybody else's. */
async function setup() {
  const prefix = testNamespace(import.meta.url);
  const world = await openTaskWorld(prefix, { leaderLeaseMs: LEASE_MS });
  stops.push(() => world.stop());
  const dir = await mkdtemp(join(tmpdir(), 'taskledger-clock-'));
  stops.push(() => rm(dir, { recursive: true }));
  const file = join(dir, 'offset');
  const jumpTo = (offsetMs: number) => writeFile(file, String(offsetMs));
  await jumpTo(0);
  const dispatcher = startNodeProcess('src/main.ts', ['dispatcher'], {
    NATS_URL: testNatsUrl(),
    TASKLEDGER_PREFIX: prefix,
    TASKLEDGER_LEADER_LEASE_MS: String(LEASE_MS),
    NODE_OPTIONS: `--require ${JUMPING_CLOCK}`,
    JUMPING_CLOCK: file,
  });
  stops.push(() => dispatcher.stop());
  await dispatcher.logged('leading', 60_000);
  const parts = { nc: world.nc, names: world.names, logger: silentLogger };
  const registry = openRegistry(parts);
  const schedules = openSchedules(parts);
  for (const service of [registry, schedules]) {
    await service.start();
    stops.push(() => service.stop());
  }
  return { world, dispatcher, jumpTo, registry, schedules };
}

const queuedLateMs = (world: TaskWorld, id: string, dueAt: number): number =>
  (world.book.get(id)?.find(({ event }) => event.kind === 'QUEUED')?.storedAt ?? Number.NaN) - dueAt;

const slotsFired = (world: TaskWorld): number[] =>
  [...world.book.values()].flatMap(([first]) =>
    first?.event.kind === 'INGESTED' && first.event.data.schedule !== undefined
      ? [first.event.data.schedule.slotAt ?? 0]
      : [],
  );

it('a dispatcher whose clock jumps an hour ahead and an hour back loses no lease, and nothing is early, late, missed or doubled', async () => {
  const { world, dispatcher, jumpTo, registry, schedules } = await setup();
  await world.work(({ attempt }) => (attempt === 1 ? 'fail' : 'complete'));
  const begin = Date.now();
  const at = new Date(begin).toISOString();
  const by = { kind: 'user', id: 'ada' } as const;
  const definition = DefinitionSchema.parse({ type: TYPE, payload: null, every: 1_000 });
  await schedules.put(
    { tenant: TENANT, name: 'every-second', by, now: begin },
    { ...definition, payload: null },
  );
  const until = new Date(begin + HOUR_MS / 2).toISOString();
  await registry.pauses.put({ type: 'paused' }, { reason: 'for half an hour', until, actor: 'key:ada', at });
  const policy = { backoff: { kind: 'fixed', baseMs: 1_500 }, jitter: 'none' } as const;
  const dueAts = Array.from({ length: 40 }, (_, n) => begin + 1_000 + n * 300);
  const due = await Promise.all(
    dueAts.map(async (runAt) => ({ runAt, id: await world.ingest({ runAt, policy }) })),
  );
  const waits = await Promise.all([
    world.ingest({ runAt: begin + HOUR_MS / 2 }),
    // The dispatcher has heard of the pause by then.
    world.ingest({ type: 'paused', runAt: begin + 8_000 }),
    world.ingest({ type: 'late', runAt: begin + HOUR_MS / 2, deadlineAt: begin + HOUR_MS / 2 + 1_000 }),
  ]);

  for (const [n, offsetMs] of [HOUR_MS, -HOUR_MS, 0].entries()) {
    const reached = due[10 * (n + 1)]?.id ?? '';
    await eventually(() => expect(world.kindsOf(reached)).toContain('QUEUED'), { timeoutMs: 60_000 });
    await jumpTo(offsetMs);
  }
  for (const { id } of due)
    await eventually(() => expect(world.kindsOf(id).at(-1)).toBe('COMPLETED'), { timeoutMs: 60_000 });

  for (const { runAt, id } of due) {
    const lateMs = queuedLateMs(world, id, runAt);
    expect(lateMs).toBeGreaterThanOrEqual(-2);
    // An hour, that is: how punctual it is on a machine at rest is a figure of the bench.
    expect(lateMs).toBeLessThan(HOUR_MS / 60);
    expect(world.kindsOf(id).filter((kind) => kind === 'QUEUED')).toHaveLength(2);
  }
  expect(waits.map((id) => world.kindsOf(id))).toEqual(Array(waits.length).fill(['INGESTED']));
  const slots = slotsFired(world).sort((a, b) => a - b);
  expect(slots.length).toBeGreaterThan(10);
  expect(slots.slice(1).map((slot, n) => slot - (slots[n] ?? 0))).toEqual(
    Array(slots.length - 1).fill(1_000),
  );
  const said = dispatcher.lines.filter((line) => line.includes('no longer leading'));
  expect(said).toEqual([]);
});
