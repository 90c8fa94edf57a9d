import { describe, expect, test } from 'vitest';
import { claim, complete, given, ingest, queue, start } from '../../test/support/life.ts';
import { decodeEvent, encodeEvent, UnreadableEvent, upcast } from './codec.ts';
import { EVENT_VERSION } from './events.ts';

const { events } = given(ingest(), queue(), claim(), start(), complete());
const ingested = given().gives(ingest());
const without = (key: string): Record<string, unknown> =>
  Object.fromEntries(Object.entries(ingested).filter(([name]) => name !== key));

test('what is encoded is decoded to the same event', () => {
  for (const { event } of events) expect(decodeEvent(encodeEvent(event))).toEqual(event);
});

describe('a message is unreadable', () => {
  test.each([
    ['that is not JSON', '{"v":1'],
    ['that is empty', ''],
    ['that is not an object', '[1]'],
    ['that is null', 'null'],
    ['without a version', JSON.stringify(without('v'))],
    ['of a version yet to come', JSON.stringify({ ...ingested, v: EVENT_VERSION + 1 })],
    ['of a version that never was', JSON.stringify({ ...ingested, v: 0 })],
    ['whose version is a text', JSON.stringify({ ...ingested, v: '1' })],
    ['of an unknown kind', JSON.stringify({ ...ingested, kind: 'EXPLODED' })],
    ['without a task id', JSON.stringify(without('taskId'))],
    ['without a tenant', JSON.stringify(without('tenant'))],
    ['without a type', JSON.stringify(without('type'))],
    ['without data', JSON.stringify(without('data'))],
    ['whose data is null', JSON.stringify({ ...ingested, data: null })],
  ])('%s', (_, text) => {
    expect(() => decodeEvent(text)).toThrow(UnreadableEvent);
  });
});

describe('an old event', () => {
  /** Two steps as a later version might have them: a renamed field, then a new one. */
  const steps = [
    ({ who, ...event }: Record<string, unknown>) => ({ ...event, actor: who }),
    (event: Record<string, unknown>) => ({ ...event, priority: 2 }),
  ];
  const { actor, priority: _, ...rest } = ingested;

  test('is raised step by step to the current version', () => {
    expect(upcast({ ...rest, v: 1, who: actor }, steps)).toEqual({ ...rest, v: 3, actor, priority: 2 });
  });

  test('takes only the steps it has not taken', () => {
    expect(upcast({ ...rest, v: 2, who: 'kept', actor }, steps)).toMatchObject({ v: 3, who: 'kept', actor });
  });

  test('of the current version is left alone', () => {
    const event = { ...rest, v: 3, who: 'kept' };
    expect(upcast(event, steps)).toBe(event);
  });

  test('is checked after it was raised', () => {
    expect(() => upcast({ ...rest, v: 1 }, [() => ({ kind: 'GONE' })])).toThrow(UnreadableEvent);
  });
});
