import { headers } from '@nats-io/transport-node';
import { expect, test } from 'vitest';
import { given, ingest, queue } from '../../test/support/life.ts';
import { encodeEvent } from '../domain/codec.ts';
import { batchOf } from './log-batch.ts';

const event = given(ingest(), queue()).events[0]?.event;
if (event === undefined) throw new Error('no event');
const data = Buffer.from(encodeEvent(event));

/** As HISTORY gives it: the n-th message, which stands for the event at `source` in TASKS. */
function delivered(n: number, source: number) {
  const noted = headers();
  noted.set('Nats-Stream-Source', `TASKS ${source} tasks.> history.>`);
  return { seq: n, storedAt: source, message: { data, headers: noted } as never };
}
const read = (sources: readonly number[], after = 0) =>
  batchOf(
    sources.map((source, index) => delivered(index + 1, source)),
    { stream: 'history', fromSeq: 1, after },
  );

test('an event that HISTORY holds twice is read once', () => {
  expect(read([1, 2, 3, 2, 3, 4])?.events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
});

test('a stretch that was read before and comes again is no batch', () => {
  expect(read([2, 3], 3)).toBeUndefined();
  expect(read([2, 3, 4], 3)).toMatchObject({ lastSeq: 4, events: [{ seq: 4 }] });
});

test('an event that cannot be decoded comes as unreadable, in its place', () => {
  const broken = { ...delivered(2, 2), message: { data: Buffer.from('{'), headers: undefined } as never };
  const batch = batchOf([{ ...delivered(1, 1) }, broken], { fromSeq: 1, after: 0 });
  expect(batch).toMatchObject({ lastSeq: 2, events: [{ seq: 1 }], unreadable: [{ seq: 2, text: '{' }] });
});
