import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { HistoryMessage } from '../log/history.ts';
import { checkHistory } from './history-check.ts';

/** A HISTORY whose messages, from sequence 1 on, are these events of TASKS. */
function historyOf(sources: readonly (number | undefined)[], deleted: readonly number[] = []) {
  let looks = 0;
  return {
    looks: () => looks,
    look: async (seq: number): Promise<HistoryMessage | undefined> => {
      looks += 1;
      for (let at = seq; at <= sources.length; at += 1)
        if (!deleted.includes(at)) return { seq: at, sourceSeq: sources[at - 1], storedAt: 0 };
      return undefined;
    },
  };
}
const upTo = (count: number) => Array.from({ length: count }, (_, n) => n + 1);
const START = { historySeq: 1, sourceSeq: 1 };

describe('a HISTORY', () => {
  test('that has every event once and in order is passed with few looks', async () => {
    const { look, looks } = historyOf(upTo(10_000));
    expect(await checkHistory(look, START, 10_000)).toEqual({
      anchor: { historySeq: 10_000, sourceSeq: 10_000 },
      findings: [],
    });
    expect(looks()).toBe(20);
  });

  test('that lacks events is told where and which', async () => {
    const { look } = historyOf(upTo(3_000).filter((seq) => seq < 1_234 || seq > 1_240));
    const { findings, anchor } = await checkHistory(look, START, 2_993);
    expect(findings).toEqual([{ what: 'missing', fromSeq: 1_234, toSeq: 1_240, historySeq: 1_234 }]);
    expect(anchor).toEqual({ historySeq: 2_993, sourceSeq: 3_000 });
  });

  test('that has events twice is told where and which', async () => {
    const { look } = historyOf([...upTo(700), 699, 700, ...upTo(2_000).slice(700)]);
    const { findings, anchor } = await checkHistory(look, START, 2_002);
    expect(findings).toEqual([{ what: 'doubled', fromSeq: 699, toSeq: 700, historySeq: 701 }]);
    expect(anchor).toEqual({ historySeq: 2_002, sourceSeq: 2_000 });
  });

  test('that has a message from elsewhere is told where', async () => {
    const { look } = historyOf([...upTo(3), undefined, 4, 5]);
    const { findings, anchor } = await checkHistory(look, START, 6);
    expect(findings).toEqual([{ what: 'foreign', fromSeq: 4, toSeq: 4, historySeq: 4 }]);
    expect(anchor).toEqual({ historySeq: 6, sourceSeq: 5 });
  });

  test('is judged right wherever one run is missing or doubled, and whatever is deleted beside it', async () => {
    const damage = fc.record({
      at: fc.integer({ min: 2, max: 1_800 }),
      length: fc.integer({ min: 1, max: 150 }),
      doubled: fc.boolean(),
      deleted: fc.array(fc.integer({ min: 2, max: 1_500 }), { maxLength: 10 }),
    });
    await fc.assert(
      fc.asyncProperty(damage, async ({ at, length, doubled, deleted }) => {
        const events = upTo(2_000);
        const sources = doubled
          ? [...events.slice(0, at + length), ...events.slice(at)]
          : [...events.slice(0, at), ...events.slice(at + length)];
        const where = doubled ? at + length + 1 : at + 1;
        const gone = deleted.filter((seq) => seq !== where);
        const { findings } = await checkHistory(historyOf(sources, gone).look, START, sources.length);
        expect(findings).toEqual([
          {
            what: doubled ? 'doubled' : 'missing',
            fromSeq: at + 1,
            toSeq: at + length,
            historySeq: where,
          },
        ]);
      }),
    );
  });
});
