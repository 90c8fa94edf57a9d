import { beforeAll, describe, expect, test } from 'vitest';
import type { TaskEvent } from '../../../src/domain/events.ts';
import { evolve, type TaskState } from '../../../src/domain/task.ts';
import type { OpenedLog } from '../../../src/log/open.ts';
import { eventOf, type Move, newIds, TENANT, walk } from './tasks.ts';
import type { Ground } from './world.ts';

const ROUNDS = 500;

/** Lives that pass through every transition together. */
const LIVES: Readonly<Record<string, readonly Move[]>> = {
  'retries, a lost lease, a cancellation, a replay and success': [
    ...(['ingest', 'queue', 'claim', 'start', 'fail', 'queue', 'claim', 'lose', 'carry', 'queue'] as const),
    ...([
      'claim',
      'start',
      'request_cancel',
      'cancel',
      'replay',
      'queue',
      'claim',
      'start',
      'complete',
    ] as const),
  ],
  'the dead-letter queue': ['ingest', 'queue', 'claim', 'start', 'fail_for_good', 'dead_letter', 'replay'],
  rejection: ['reject'],
};

/** Different moves that are both legal after the path. */
const RIVALS: readonly { readonly path: readonly Move[]; readonly moves: readonly [Move, Move] }[] = [
  { path: [], moves: ['ingest', 'reject'] },
  { path: ['ingest'], moves: ['queue', 'request_cancel'] },
  { path: ['ingest', 'queue'], moves: ['claim', 'request_cancel'] },
  { path: ['ingest', 'queue', 'claim', 'start'], moves: ['complete', 'lose'] },
  { path: ['ingest', 'queue', 'claim', 'start'], moves: ['complete', 'request_cancel'] },
  { path: ['ingest', 'queue', 'claim', 'start'], moves: ['fail', 'complete'] },
];

interface Race {
  readonly accepted: readonly { readonly seq: number; readonly event: TaskEvent }[];
  /** Last sequences that the refused writer was told. */
  readonly told: readonly number[];
}

export function racesAreWonOnce(ground: () => Ground): void {
  describe('two writers that race', () => {
    let writers: readonly [OpenedLog, OpenedLog];
    beforeAll(async () => {
      writers = [await ground().open(), await ground().open()];
    });

    async function race(
      taskId: string,
      state: TaskState | undefined,
      moves: readonly [Move, Move],
    ): Promise<Race> {
      const entries = writers.map((log, n) => ({ log, event: eventOf(moves[n] ?? moves[0], taskId, state) }));
      const results = await Promise.all(
        entries.map(async ({ log, event }) => ({ event, outcome: await log.append(event, state?.seq ?? 0) })),
      );
      return {
        accepted: results.flatMap(({ event, outcome }) =>
          outcome.status === 'stored' ? [{ seq: outcome.seq, event }] : [],
        ),
        told: results.flatMap(({ outcome }) => (outcome.status === 'conflict' ? [outcome.lastSeq] : [])),
      };
    }

    /** One winner, and the other is told where the task stands now. */
    const expectOneWinner = (races: readonly Race[], what: string): void => {
      expect(races.filter(({ accepted }) => accepted.length !== 1).length, `${what}: not one winner`).toBe(0);
      for (const { accepted, told } of races) expect(told).toEqual(accepted.map(({ seq }) => seq));
    };

    test.each(Object.entries(LIVES))(
      `through a life with %s have one winner a step, in each of ${ROUNDS} rounds`,
      async (_name, life) => {
        const states = new Map<string, TaskState | undefined>(newIds(ROUNDS).map((id) => [id, undefined]));
        for (const move of life) {
          const races = await Promise.all([...states].map(([id, state]) => race(id, state, [move, move])));
          expectOneWinner(races, move);
          for (const { seq, event } of races.flatMap(({ accepted }) => accepted)) {
            states.set(event.taskId, evolve(states.get(event.taskId), { seq, storedAt: event.at, event }));
          }
        }
        const [first] = states.keys();
        const stored = await writers[0].readTask(TENANT, first ?? '', states.get(first ?? '')?.seq);
        expect(stored.length, 'the log holds the accepted events alone').toBe(life.length);
      },
      120_000,
    );

    test.each(RIVALS)(
      `with $moves after $path have one winner, in each of ${ROUNDS} rounds`,
      async ({ path, moves }) => {
        const races = await Promise.all(
          newIds(ROUNDS).map(async (id) => race(id, await walk(writers[0], id, path), moves)),
        );
        expectOneWinner(races, moves.join(' and '));
      },
      120_000,
    );
  });
}
