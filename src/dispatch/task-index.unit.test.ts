import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readId, writeId } from './id-bits.ts';
import { LiveTask } from './live-task.ts';
import { Placement } from './placement.ts';
import { SHARDS, shardOf, TaskIndex } from './task-index.ts';

const place = new Placement({ min: 1, max: 1, ms: 1 });

const taskOf = (tenant: string, id: string): LiveTask =>
  new LiveTask({
    id: readId(id),
    share: place.ledger.share(tenant, 'transcode'),
    line: place.line('transcode', 1),
    status: 'INGESTED',
    seq: 1,
    priority: 2,
    round: 1,
    attempt: 0,
    known: true,
  });

const id = fc.uuid().map((uuid) => uuid.toLowerCase());

describe('an id', () => {
  it('comes back from its four integers as it was', () => {
    fc.assert(
      fc.property(id, (uuid) => {
        expect(taskOf('acme', uuid).id).toBe(uuid);
        const [id0, id1, id2, id3] = readId(uuid);
        expect(writeId({ id0, id1, id2, id3 })).toBe(uuid);
      }),
    );
  });
});

describe('the index', () => {
  it('finds what a map would find, after any additions and removals', () => {
    const few = Array.from(
      { length: 3_000 },
      (_, n) => `00000000-0000-4000-8000-${(n * 7).toString(16).padStart(12, '0')}`,
    );
    const step = fc.record({
      tenant: fc.constantFrom('acme', 'globex'),
      at: fc.nat({ max: few.length - 1 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 4_000, size: 'max' }), (steps) => {
        const index = new TaskIndex();
        const model = new Map<string, LiveTask>();
        for (const { tenant, at } of steps) {
          const uuid = few[at] ?? '';
          const known = model.get(`${tenant} ${uuid}`);
          expect(index.get(tenant, uuid)).toBe(known);
          if (known === undefined) {
            const task = taskOf(tenant, uuid);
            index.add(task);
            model.set(`${tenant} ${uuid}`, task);
          } else {
            index.remove(known);
            index.remove(known);
            model.delete(`${tenant} ${uuid}`);
          }
        }
        expect(index.size).toBe(model.size);
        expect(new Set(index.values())).toEqual(new Set(model.values()));
        for (const task of model.values()) expect(index.get(task.tenant, task.id)).toBe(task);
      }),
      { numRuns: 20 },
    );
  });

  it('keeps every task in its shard, and the shards about equally full', () => {
    const index = new TaskIndex();
    const counts = Array.from({ length: SHARDS }, () => 0);
    for (let n = 0; n < 40 * SHARDS; n += 1) {
      const uuid = `018f0000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`;
      index.add(taskOf('acme', uuid));
      counts[shardOf(uuid)] = (counts[shardOf(uuid)] ?? 0) + 1;
    }
    expect(counts.map((_, shard) => index.shard(shard).length)).toEqual(counts);
    expect(Math.max(...counts)).toBeLessThan(90);
    expect(Math.min(...counts)).toBeGreaterThan(10);
  });
});
