import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FencedLog } from '../../../test/support/fenced-log.ts';
import { randomLog } from '../../../test/support/random-log.ts';
import { STATUSES } from '../../domain/events.ts';
import type { Priority } from '../../domain/names.ts';
import { type TaskState, TERMINAL } from '../../domain/task.ts';
import { DispatchCore } from '../core.ts';
import type { Decision } from '../decisions.ts';
import type { WhyFact } from '../explain.ts';
import type { TokenState } from '../ledger.ts';
import { Mode } from '../live-task.ts';
import { SHARDS } from '../task-index.ts';
import { decodeSnapshot, encodeSnapshot, type Snapshot } from './format.ts';
import { RowWriter, readRows } from './row-codec.ts';
import type { LoggedMode, TaskRow } from './task-row.ts';

const START = Date.parse('2026-01-01T00:00:00Z');
const TENANTS = ['acme', 'globex', 'initech'];
const TYPES = ['transcode', 'thumbnail'];

/** A core as it is before it has read anything, with limits of every kind. */
function newCore(): DispatchCore {
  const core = new DispatchCore({
    window: { min: 1_000, max: 1_000, ms: 500 },
    inlinePayloadBytes: 100,
    payloadCacheBytes: 1_000,
  });
  core.terms.putTenant(
    'globex',
    {
      name: 'globex',
      createdAt: '2026-01-01T00:00:00.000Z',
      maxBacklog: 10,
      limits: { concurrency: 4, ratePerSecond: 2, burst: 5 },
      types: { transcode: { ratePerSecond: 1, burst: 2 } },
    },
    START,
  );
  core.terms.putType(
    'thumbnail',
    { type: 'thumbnail', concurrency: 5, concurrencyKeyLimit: 2 } as never,
    START,
  );
  return core;
}

const show = (core: DispatchCore, log: FencedLog, from: number, to: number): void => {
  for (const recorded of log.events.slice(from, to)) core.observe(recorded);
};

const header = (core: DispatchCore) => ({
  position: core.position,
  eventId: 'e1',
  takenAt: START,
  tokens: core.tokens,
  age: [],
  outage: { parts: [], condemned: [] },
  attempts: [],
});

async function* piecesOf(bytes: Uint8Array, size = 1_000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** Writes a snapshot while the writer goes on reading the log: `stride` events between two blocks. */
function snapshotOf(writer: DispatchCore, log: FencedLog, stride: number): Buffer {
  const source = {
    header: () => header(writer),
    get position() {
      return writer.position;
    },
    rows: (shard: number) => writer.rows(shard),
  };
  const blocks: Buffer[] = [];
  for (const block of encodeSnapshot(source, stride === 0 ? undefined : 1)) {
    blocks.push(block);
    show(writer, log, writer.position, writer.position + stride);
  }
  return Buffer.concat(blocks);
}

function restored({ header: { position, tokens }, blocks }: Snapshot): DispatchCore {
  const core = newCore();
  core.restore({ position, tokens, blocks });
  return core;
}

/** All that decisions depend on, of every task and of the whole. */
function seenBy(core: DispatchCore, log: FencedLog) {
  const rows = Array.from({ length: SHARDS }, (_, shard) => core.rows(shard)).flat();
  const tasks = rows.map(({ inLane: _found, ...task }) => task).sort((one, other) => one.order - other.order);
  const stats = Object.entries(core.stats())
    .filter(([, line]) => line.waiting + line.delayed + line.ready + line.running > 0)
    .map(
      ([key, { waiting, delayed, ready, running }]) => [key, { waiting, delayed, ready, running }] as const,
    )
    .sort(([one], [other]) => one.localeCompare(other));
  const seen = {
    tasks,
    stats,
    tokens: core.tokens.map((state) => tokensAt(state, log.now)),
    backlogs: core.waitingByTenant(),
    reasons: [...log.states].map(({ tenant, id }) => core.explain(tenant, id, log.now).filter(isFirm)),
  };
  // Absent or undefined is the same.
  return JSON.parse(JSON.stringify(seen)) as typeof seen;
}

/** A bucket fills when it is looked at; here as if all had been looked at now. */
function tokensAt({ tenant, type, tokens, at }: TokenState, now: number) {
  const [perSecond, burst] = type === undefined ? [2, 5] : [1, 2];
  const filled = Math.min(burst, tokens + ((now - at) / 1_000) * perSecond);
  return { tenant, type, tokens: filled.toFixed(6) };
}

/** Whether a task waits in its lane or behind its key may be found out late, when its turn comes. */
const isFirm = (fact: WhyFact): boolean =>
  fact.kind !== 'behind' &&
  fact.kind !== 'ordering_key' &&
  !(fact.kind === 'limit' && fact.limit === 'concurrency_key');

const named = (decisions: readonly Decision[], kinds: readonly Decision['kind'][]): string[] =>
  decisions
    .filter(({ kind }) => kinds.includes(kind))
    .map(({ kind, task, seq }) => `${kind} ${task.id} ${seq}`);

describe('a snapshot and the tail of the log', () => {
  it('make a core that knows what one knows that has read all of the log, wherever it was cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          seed: fc.integer(),
          events: fc.integer({ min: 20, max: 400 }),
          cut: fc.double({ min: 0, max: 1, noNaN: true }),
          stride: fc.integer({ min: 0, max: 12 }),
        }),
        async ({ seed, events, cut, stride }) => {
          const log = randomLog({
            seed,
            events,
            start: START,
            tenants: TENANTS,
            types: TYPES,
            versions: [1, 1, 2],
          });
          const writer = newCore();
          show(writer, log, 0, 1 + Math.floor(cut * (events - 1)));
          const snapshot = await decodeSnapshot(piecesOf(snapshotOf(writer, log, stride)));
          const late = restored(snapshot);
          const whole = newCore();
          show(late, log, snapshot.header.position, events);
          show(whole, log, 0, events);
          for (const core of [late, whole]) core.advance(log.now);
          expect(late.position).toBe(whole.position);
          expect(seenBy(late, log)).toEqual(seenBy(whole, log));
        },
      ),
      { numRuns: 100 },
    );
  });

  it('make a core that decides the same from then on', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer(), fc.integer({ min: 0, max: 299 }), async (seed, cut) => {
        // One tenant, type and version: whose turn comes first among equals is nobody's promise.
        const log = randomLog({ seed, events: 300, start: START, tenants: ['acme'], types: ['thumbnail'] });
        const writer = newCore();
        show(writer, log, 0, cut + 1);
        const snapshot = await decodeSnapshot(piecesOf(snapshotOf(writer, log, 0)));
        const cores = [restored(snapshot), newCore()] as const;
        let shown = snapshot.header.position;
        show(cores[1], log, 0, shown);
        for (let round = 0; round < 40; round += 1) {
          const [late, whole] = cores.map((core) => {
            show(core, log, shown, log.events.length);
            core.enter('leading');
            core.advance(log.now);
            const decisions: Decision[] = [];
            core.decide(decisions, log.now);
            return decisions;
          });
          shown = log.events.length;
          expect(named(late ?? [], ['queue'])).toEqual(named(whole ?? [], ['queue']));
          const ends = ['dead_letter', 'cancel', 'carry'] as const;
          expect(named(late ?? [], ends).sort()).toEqual(named(whole ?? [], ends).sort());
          playOn(log, whole ?? []);
        }
      }),
      { numRuns: 30 },
    );
  });

  it('leave no task behind, although the world moved on while the snapshot was written', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer(),
        fc.integer({ min: 0, max: 299 }),
        fc.integer({ min: 1, max: 9 }),
        async (seed, cut, stride) => {
          const log = randomLog({ seed, events: 300, start: START, tenants: TENANTS, types: TYPES });
          const writer = newCore();
          show(writer, log, 0, cut + 1);
          const core = restored(await decodeSnapshot(piecesOf(snapshotOf(writer, log, stride))));
          for (let round = 0; round < 300 && [...log.states].some(isOpen); round += 1) {
            show(core, log, core.position, log.events.length);
            core.enter('leading');
            core.advance(log.now);
            const decisions: Decision[] = [];
            core.decide(decisions, log.now);
            playOn(log, decisions);
          }
          expect([...log.states].filter(isOpen)).toEqual([]);
        },
      ),
      { numRuns: 40 },
    );
  });
});

const isOpen = ({ status }: TaskState): boolean => !TERMINAL.has(status);

/** Stores what was decided, and lets workers finish some of what is queued. */
function playOn(log: FencedLog, decisions: readonly Decision[]): void {
  const dispatcher = { kind: 'dispatcher', id: 'd1' } as const;
  for (const { kind, task } of decisions)
    log.do(task.id, dispatcher, kind === 'queue' ? { kind, inlinePayload: true } : { kind });
  for (const { id, status } of log.states) {
    if (status === 'QUEUED') log.claim(id);
    else if (status === 'CLAIMED') log.start(id);
    else if (status === 'PROCESSING') log.complete(id);
  }
  log.now += 900;
}

const small = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const sequence = fc.integer({ min: 1, max: 2 ** 50 });
const row: fc.Arbitrary<TaskRow> = fc.record({
  id: fc.tuple(small, small, small, small),
  tenant: fc.constantFrom(...TENANTS),
  type: fc.constantFrom(...TYPES),
  version: fc.constantFrom(1, 2, 9_999),
  mode: fc.constantFrom<LoggedMode[]>(Mode.waiting, Mode.delayed, Mode.doomed, Mode.queued, Mode.running),
  status: fc.constantFrom(...STATUSES),
  known: fc.boolean(),
  cancelRequested: fc.boolean(),
  holds: fc.boolean(),
  started: fc.boolean(),
  inLane: fc.boolean(),
  priority: fc.constantFrom<Priority[]>(1, 2, 3, 4),
  attempt: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  seq: sequence,
  order: sequence,
  submittedAt: fc.integer({ min: 0, max: 2 ** 50 }),
  dueAt: fc.integer({ min: 0, max: 2 ** 50 }),
  payloadSeq: fc.option(sequence, { nil: undefined }),
  rare: fc.option(fc.record({ trace: fc.string(), lost: fc.nat(), orderingKey: fc.string() }), {
    nil: undefined,
  }),
});

describe('the format', () => {
  it('brings back every row as it was', () => {
    fc.assert(
      fc.property(fc.array(row, { maxLength: 50 }), (rows) => {
        const writer = new RowWriter();
        for (const [place, each] of rows.entries()) writer.write(each, place);
        expect([...readRows(writer.take(), rows)]).toEqual(rows);
      }),
    );
  });

  const bytes = ((): Buffer => {
    const log = randomLog({ seed: 7, events: 200, start: START, tenants: TENANTS, types: TYPES });
    const writer = newCore();
    show(writer, log, 0, 200);
    return snapshotOf(writer, log, 1);
  })();

  it('is the same however it comes in pieces', async () => {
    const whole = await decodeSnapshot(piecesOf(bytes, bytes.length));
    const inBits = await decodeSnapshot(piecesOf(bytes, 7));
    const rowsOf = ({ blocks }: Snapshot) => blocks.flatMap(({ rows }) => [...rows()]);
    expect(rowsOf(inBits)).toEqual(rowsOf(whole));
    expect(inBits.header).toEqual(whole.header);
    expect(whole.tasks).toBeGreaterThan(0);
  });

  it('shows that something is missing, wherever it was cut off', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: bytes.length - 1 }), async (length) => {
        await expect(decodeSnapshot(piecesOf(bytes.subarray(0, length)))).rejects.toMatchObject({
          code: 'snapshot_unreadable',
        });
      }),
    );
  });

  it('shows that a bit has turned over, whichever', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: bytes.length * 8 - 1 }), async (bit) => {
        const damaged = Buffer.from(bytes);
        damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        await expect(decodeSnapshot(piecesOf(damaged))).rejects.toMatchObject({
          code: 'snapshot_unreadable',
        });
      }),
      { numRuns: 300 },
    );
  });

  it('is refused when a later release wrote it', async () => {
    const later = Buffer.from('taskledger dispatcher snapshot 2');
    const { blockOf, Block } = await import('./blocks.ts');
    await expect(decodeSnapshot(piecesOf(blockOf(Block.format, later)))).rejects.toMatchObject({
      code: 'snapshot_unreadable',
      details: { reason: 'its format is "taskledger dispatcher snapshot 2"' },
    });
  });
});
