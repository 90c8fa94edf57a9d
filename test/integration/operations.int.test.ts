import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { TaskledgerError } from '../../src/domain/errors.ts';
import { ensureStreams } from '../../src/log/streams.ts';
import { names as namesOf } from '../../src/log/subjects.ts';
import { silentLogger } from '../../src/observe/log.ts';
import type { BulkKind } from '../../src/operations/bulk-kind.ts';
import { type Operations, openOperations } from '../../src/operations/operations.ts';
import { createOperationRunner } from '../../src/operations/runner.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { loadConfig } from '../../src/platform/config.ts';
import type { Service } from '../../src/platform/service.ts';
import { eventually } from '../support/eventually.ts';
import { connectTestNats, testNamespace } from '../support/servers.ts';

const names = namesOf(testNamespace(import.meta.url));
const nc = await connectTestNats();
await ensureStreams({ nc, names, config: loadConfig({}), logger: silentLogger });
const actor = { kind: 'key', id: 'k1' } as const;
const running: Service[] = [];
afterEach(async () => {
  for (const service of running.splice(0).reverse()) await service.stop();
});
afterAll(() => nc.close());

/** Touches the numbers up to `input.count`, ten a page at most; `before` may hold up or fail one of them. */
function counting(kind: string, before: (taskId: string) => Promise<void> | void = () => {}) {
  const touched: string[] = [];
  const bulk: BulkKind = {
    kind,
    async page({ input }, { cursor, limit }) {
      const from = Number(cursor ?? 0);
      const { count } = input as { count: number };
      const to = Math.min(count, from + Math.min(limit, 10));
      const targets = Array.from({ length: to - from }, (_, n) => ({
        tenant: 'acme',
        taskId: String(from + n),
      }));
      return { targets, nextCursor: to === count ? null : String(to) };
    },
    async act(_operation, { taskId }) {
      await before(taskId);
      touched.push(taskId);
      return 'touched';
    },
  };
  return { bulk, touched };
}

async function process(...kinds: BulkKind[]): Promise<{ operations: Operations; runner: Service }> {
  const parts = { nc, names, clock: systemClock, logger: silentLogger };
  const operations = openOperations(parts);
  const runner = createOperationRunner({ ...parts, operations, kinds, leaseMs: 5_000 });
  running.push(operations, runner);
  await operations.start();
  await runner.start();
  return { operations, runner };
}

const begin = (operations: Operations, kind: string, count: number, ratePerSecond?: number) =>
  operations.begin({ kind, tenant: 'acme', input: { count }, actor, asOf: 0, ratePerSecond });
const ended = (operations: Operations, id: string) =>
  eventually(async () => {
    const operation = await operations.get(id);
    return operation?.state === 'done' ? operation : false;
  });

describe('a bulk operation', () => {
  test('is worked on page by page until nothing is left, by one of two processes', async () => {
    const { bulk, touched } = counting('plain');
    const { operations } = await process(bulk);
    await process(bulk);
    const { id } = await begin(operations, 'plain', 95);
    expect((await ended(operations, id)).progress).toEqual({
      matched: 95,
      outcomes: { touched: 95 },
      failures: [],
    });
    expect(new Set(touched).size).toBe(95);
    expect(touched).toHaveLength(95);
    expect(operations.list({ kind: 'plain', tenant: 'acme' }).map((each) => each.id)).toEqual([id]);
    expect(operations.list({ kind: 'plain', tenant: 'zeta' })).toEqual([]);
  });

  test('goes on in another process where the first one stopped', async () => {
    let free = (): void => {};
    const held = new Promise<void>((resolve) => {
      free = resolve;
    });
    const first = counting('moved', (taskId) => (taskId === '25' ? held : undefined));
    const one = await process(first.bulk);
    const { id } = await begin(one.operations, 'moved', 60);
    // All of the third page but the one that is held.
    await eventually(() => first.touched.length === 29);
    const stopped = one.runner.stop();
    free();
    await stopped;
    expect(await one.operations.get(id)).toMatchObject({ state: 'running', cursor: '30' });
    const second = counting('moved');
    const other = await process(second.bulk);
    expect((await ended(other.operations, id)).progress.matched).toBe(60);
    expect(second.touched).toEqual(Array.from({ length: 30 }, (_, n) => String(30 + n)));
  });

  test('repeats a page during which the log was away, and counts each target once', async () => {
    let faults = 2;
    const { bulk } = counting('flaky', (taskId) => {
      if (taskId === '13' && faults-- > 0) throw new TaskledgerError('log_unavailable', { reason: 'test' });
    });
    const { operations } = await process(bulk);
    const { id } = await begin(operations, 'flaky', 30);
    expect((await ended(operations, id)).progress).toMatchObject({ matched: 30, outcomes: { touched: 30 } });
  });

  test('does the same page again, and counts it whole, when what it has done took targets out of reach', async () => {
    const left = new Set(Array.from({ length: 30 }, (_, n) => n));
    let faults = 1;
    const { bulk, touched } = counting('moving', (taskId) => {
      left.delete(Number(taskId));
      if (taskId === '14' && faults-- > 0) throw new TaskledgerError('log_unavailable', { reason: 'test' });
    });
    const { operations } = await process({
      ...bulk,
      async page(_, { cursor }) {
        const targets = [...left].filter((n) => n > Number(cursor ?? -1)).slice(0, 10);
        const last = targets.at(-1);
        return {
          targets: targets.map((n) => ({ tenant: 'acme', taskId: String(n) })),
          nextCursor: last === undefined ? null : String(last),
        };
      },
    });
    const { id } = await begin(operations, 'moving', 30);
    expect((await ended(operations, id)).progress).toMatchObject({ matched: 30, outcomes: { touched: 30 } });
    expect(touched.length).toBeGreaterThan(30);
  });

  test('counts and shows what failed, and goes on', async () => {
    const { bulk } = counting('failing', (taskId) => {
      if (taskId === '7') throw new TaskledgerError('append_conflict', { taskId });
    });
    const { operations } = await process(bulk);
    const { id } = await begin(operations, 'failing', 20);
    expect((await ended(operations, id)).progress).toMatchObject({
      outcomes: { touched: 19, failed: 1 },
      failures: [{ taskId: '7', code: 'append_conflict' }],
    });
  });

  test('keeps to its rate, pauses, goes on and is aborted', async () => {
    const { bulk, touched } = counting('slow');
    const { operations } = await process(bulk);
    const startedAt = performance.now();
    const { id } = await begin(operations, 'slow', 10_000, 40);
    await eventually(() => touched.length >= 30);
    expect(performance.now() - startedAt).toBeGreaterThan(400);
    await operations.control(id, 'pause', actor);
    const paused = await eventually(async () => {
      const before = await operations.get(id);
      return before?.state === 'paused' && before.progress.matched === touched.length ? before : false;
    });
    await operations.control(id, 'resume', actor);
    await eventually(() => touched.length > paused.progress.matched);
    expect(await operations.control(id, 'abort', actor)).toMatchObject({
      state: 'aborted',
      changedBy: actor,
    });
    await expect(operations.control(id, 'resume', actor)).rejects.toMatchObject({ code: 'operation_ended' });
  });

  test('that nobody has begun is not known', async () => {
    const { operations } = await process();
    await expect(operations.control('none', 'pause', actor)).rejects.toMatchObject({
      code: 'operation_not_found',
    });
  });
});
