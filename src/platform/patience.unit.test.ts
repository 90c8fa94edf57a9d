import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { TaskledgerError } from '../domain/errors.ts';
import { Patience } from './patience.ts';
import { type Service, serviceGroup } from './service.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Lets the time pass, as much as it takes. */
async function outcomeOf<T>(waiting: Promise<T>): Promise<PromiseSettledResult<T>> {
  const settled = Promise.allSettled([waiting]);
  await vi.runAllTimersAsync();
  return (await settled)[0];
}
const failed = (reason: object) => ({ status: 'rejected', reason: expect.objectContaining(reason) });

const away = () => new TaskledgerError('log_unavailable', { reason: 'electing' });
const never = () => new Promise<never>(() => {});

describe('a wait', () => {
  test('ends with the answer, after failures that may pass, and tells of each', async () => {
    const told: string[] = [];
    const patience = new Patience({ onFailure: ({ code }) => told.push(code) });
    let tries = 0;
    const waiting = patience.waitFor('it', async () => {
      tries += 1;
      if (tries < 3) throw away();
      return 'there';
    });
    expect(await outcomeOf(waiting)).toEqual({ status: 'fulfilled', value: 'there' });
    expect(told).toEqual(['log_unavailable', 'log_unavailable']);
  });

  test('ends at once with a failure that does not pass', async () => {
    const refused = new TaskledgerError('nats_refused', { url: 'nats://it', reason: 'no' });
    await expect(new Patience().waitFor('it', () => Promise.reject(refused))).rejects.toBe(refused);
    const defect = new TypeError('a defect');
    await expect(new Patience().waitFor('it', () => Promise.reject(defect))).rejects.toBe(defect);
  });

  test('ends with the last failure when the time is over, which says what was waited for and how long', async () => {
    const waiting = new Patience({ forMs: 3_000 }).waitFor('the streams', () => Promise.reject(away()));
    expect(await outcomeOf(waiting)).toEqual(
      failed({
        code: 'log_unavailable',
        message: expect.stringMatching(/electing; waited 3\.0 s .* the streams$/),
      }),
    );
  });

  test('that hears nothing ends when the time is over, and takes what comes too late', async () => {
    let comes: (answer: string) => void = () => {};
    let late: string | undefined;
    const failure = new Patience({ forMs: 10 }).waitFor(
      'NATS',
      () => new Promise<string>((resolve) => (comes = resolve)),
      {
        unanswered: () => new TaskledgerError('nats_unreachable', { url: 'nats://it', reason: 'no answer' }),
        late: (answer) => (late = answer),
      },
    );
    expect(await outcomeOf(failure)).toEqual(failed({ code: 'nats_unreachable' }));
    comes('too late');
    await Promise.resolve();
    expect(late).toBe('too late');
  });

  test.each(['while it is tried', 'between two tries'])('ends at once with a stop %s', async (when) => {
    const stop = new AbortController();
    const patience = new Patience({ signal: stop.signal, onFailure: () => stop.abort() });
    const work = when === 'while it is tried' ? never : () => Promise.reject(away());
    const waiting = patience.waitFor('it', work);
    if (work === never) stop.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'shutting_down' });
    await expect(patience.waitFor('the next', never)).rejects.toMatchObject({ code: 'shutting_down' });
    await expect(patience.unlessStopped(never())).rejects.toMatchObject({ code: 'shutting_down' });
  });
});

describe('the waits of one start', () => {
  test('share one time, in which work that is done between them does not count', async () => {
    const patience = new Patience({ forMs: 2_000 });
    const passes = (after: number) => {
      let tries = 0;
      return async () => {
        tries += 1;
        if (tries <= after) throw away();
      };
    };
    const steps = async (): Promise<void> => {
      await patience.waitFor('the first', passes(1));
      await patience.unlessStopped(new Promise((resolve) => setTimeout(resolve, 60_000)));
      await patience.waitFor('the second', passes(1));
      await patience.waitFor('the third', passes(3));
    };
    // A failure costs half a second.
    expect(await outcomeOf(steps())).toEqual(
      failed({ message: expect.stringMatching(/waited 2\.0 s .* now for the third$/) }),
    );
  });
});

describe('a group of services', () => {
  const life: string[] = [];
  const service = (name: string, start: Service['start'] = async () => {}): Service => ({
    name,
    start: (patience) => {
      life.push(`${name} starts`);
      return start(patience);
    },
    stop: async () => void life.push(`${name} stops`),
  });

  test('that is told to stop while one of them waits stops at once, in reverse, and begins no other', async () => {
    life.length = 0;
    const stop = new AbortController();
    const waits = service('waits', async (patience) => {
      const waiting = patience?.waitFor('nobody', never);
      stop.abort();
      await waiting;
    });
    const inner = serviceGroup('inner', [service('before'), waits, service('after')]);
    const group = serviceGroup('outer', [service('first'), inner, service('last')]);
    const starting = group.start(new Patience({ signal: stop.signal }));
    await expect(starting).rejects.toMatchObject({ code: 'shutting_down' });
    expect(life).toEqual([
      'first starts',
      'before starts',
      'waits starts',
      'waits stops',
      'before stops',
      'first stops',
    ]);
  });

  test('has one patience for all of them', async () => {
    const given: unknown[] = [];
    const taking = (name: string) => service(name, async (patience) => void given.push(patience));
    const patience = new Patience();
    await serviceGroup('outer', [taking('one'), serviceGroup('inner', [taking('two')])]).start(patience);
    expect(given).toEqual([patience, patience]);
  });
});
