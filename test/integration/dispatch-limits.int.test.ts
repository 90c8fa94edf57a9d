import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { EventKind, Recorded } from '../../src/domain/events.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { openRegistry, type Registry } from '../../src/registry/registry.ts';
import { eventually } from '../support/eventually.ts';
import { type NodeProcess, startNodeProcess } from '../support/node-process.ts';
import { testNamespace, testNatsUrl } from '../support/servers.ts';
import { openTaskWorld, type TaskWorld, TYPE } from '../support/task-world.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const LIMITS = { tenant: 5, type: 8, key: 2 };
const TENANTS = ['acme', 'globex', 'initech'];
const KEYS = ['red', 'green'];
/** So many tasks of a tenant that follow each other have the same key, or none: more than its limit stand at the head of the queue. */
const RUN = 4;
const ROUNDS = 4;
const TASKS_A_ROUND = 600;

let world: TaskWorld;
let registry: Registry;
const running: NodeProcess[] = [];

beforeAll(async () => {
  world = await openTaskWorld(testNamespace(import.meta.url));
  registry = openRegistry({ nc: world.nc, names: world.names, logger: silentLogger });
  await registry.start();
  await registry.types.put({ type: TYPE, concurrency: LIMITS.type, concurrencyKeyLimit: LIMITS.key });
  const createdAt = '2026-01-01T00:00:00.000Z';
  for (const name of TENANTS)
    await registry.tenants.put({ name, createdAt, limits: { concurrency: LIMITS.tenant } });
});
afterAll(async () => {
  for (const dispatcher of running) await dispatcher.stop('SIGKILL');
  await registry.stop();
  await world.stop();
});

/** A dispatcher of the product in a process of its own, that has read the log. */
async function dispatch(): Promise<NodeProcess> {
  const dispatcher = startNodeProcess(MAIN, ['dispatcher'], {
    NATS_URL: testNatsUrl(),
    TASKLEDGER_PREFIX: world.names.prefix,
    TASKLEDGER_LEADER_LEASE_MS: '1000',
    // Nothing stands between a killed process and this server that could hold back what it had sent.
    TASKLEDGER_TAKEOVER_HOLD_MS: '2000',
    TASKLEDGER_SNAPSHOT_MS: '200',
    TASKLEDGER_SNAPSHOT_EVENTS: '20',
  });
  running.push(dispatcher);
  await dispatcher.logged('the log is replayed');
  return dispatcher;
}

/** The sequence at which more than `limit` tasks hold a slot together, by what `groupOf` counts together; undefined when never. */
function exceeded(
  events: readonly Recorded[],
  limit: number,
  groupOf: (taskId: string) => string | undefined,
): number | undefined {
  const holders = new Map<string, Set<string>>();
  for (const { seq, event } of events) {
    const group = groupOf(event.taskId);
    if (group === undefined) continue;
    const held = holders.get(group) ?? new Set();
    holders.set(group, held);
    if (event.kind === 'QUEUED') held.add(event.taskId);
    else if (ENDS.has(event.kind)) held.delete(event.taskId);
    if (held.size > limit) return seq;
  }
  return undefined;
}
const ENDS: ReadonlySet<EventKind> = new Set([
  'COMPLETED',
  'FAILED',
  'RETRY_CLAIMED',
  'CANCELLED',
  'DEAD_LETTER',
]);

it('no limit is exceeded by one task when leaders are killed while all slots are taken', async () => {
  const tenantOf = new Map<string, string>();
  const keyOf = new Map<string, string>();
  const submit = async (n: number): Promise<void> => {
    const tenant = TENANTS[n % TENANTS.length] ?? 'acme';
    const concurrencyKey = KEYS[Math.floor(n / (RUN * TENANTS.length)) % 5];
    const policy = { backoff: { kind: 'fixed', baseMs: 20 }, maxRetries: 50 } as const;
    const id = await world.ingest({
      tenant,
      policy,
      ...(concurrencyKey === undefined ? {} : { concurrencyKey }),
    });
    tenantOf.set(id, tenant);
    if (concurrencyKey !== undefined) keyOf.set(id, `${tenant} ${concurrencyKey}`);
  };
  let submitted = 0;
  const submitMany = () => Promise.all(Array.from({ length: TASKS_A_ROUND }, () => submit(submitted++)));
  await submitMany();
  await world.work(({ attempt, id }) => (attempt === 1 && id < '3' ? 'fail' : 'complete'));
  let leader = await dispatch();
  await leader.logged('leading');
  const queued = () => [...world.book.values()].flat().filter(({ event }) => event.kind === 'QUEUED').length;
  for (let round = 1; round <= ROUNDS; round += 1) {
    await submitMany();
    const before = queued();
    await eventually(() => expect(queued()).toBeGreaterThan(before + 30), { timeoutMs: 60_000 });
    await leader.logged('a snapshot of the memory is written');
    // In turns with a standby that is there, and with one that starts from a snapshot.
    const next = round % 2 === 0 ? await dispatch() : undefined;
    await leader.stop('SIGKILL');
    leader = next ?? (await dispatch());
    await leader.logged('leading');
  }
  const replayed = running.map(
    ({ lines }) => lines.find((line) => line.includes('the log is replayed')) ?? '',
  );
  expect(replayed.filter((line) => line.includes('"snapshot":'))).toHaveLength(ROUNDS);
  await eventually(() => expect(world.count('COMPLETED')).toBe(submitted), { timeoutMs: 120_000 });
  const events = [...world.book.values()].flat().sort((one, other) => one.seq - other.seq);
  expect({
    type: exceeded(events, LIMITS.type, () => TYPE),
    tenant: exceeded(events, LIMITS.tenant, (id) => tenantOf.get(id)),
    key: exceeded(events, LIMITS.key, (id) => keyOf.get(id)),
  }).toEqual({ type: undefined, tenant: undefined, key: undefined });
  // The limits were reached, or this would prove nothing.
  expect(exceeded(events, LIMITS.type - 1, () => TYPE)).toBeDefined();
  expect(exceeded(events, LIMITS.key - 1, (id) => keyOf.get(id))).toBeDefined();
}, 240_000);
