import { TaskledgerError } from '../../src/domain/errors.ts';
import { deadLetterReason, TERMINAL } from '../../src/domain/task.ts';
import { FencedLog, taskIdOf } from './fenced-log.ts';
import { randomOf } from './random-lives.ts';

export interface RandomLogOptions {
  readonly seed: number;
  readonly events: number;
  readonly start: number;
  readonly tenants: readonly string[];
  readonly types: readonly string[];
  readonly versions?: readonly number[];
}

const dispatcher = { kind: 'dispatcher', id: 'd1' } as const;

/** A log in which tasks with and without keys, delays and deadlines are moved about as the rules allow, by whomever. */
export function randomLog({
  seed,
  events,
  start,
  tenants,
  types,
  versions = [1],
}: RandomLogOptions): FencedLog {
  const log = new FencedLog(start);
  const dice = randomOf(seed);
  const below = (n: number): number => Math.floor(dice() * n);
  const pick = <T>(from: readonly T[]): T => from[below(from.length)] as T;
  const ids: string[] = [];
  const ingest = (): void => {
    const delayMs = pick([0, 0, 0, 500, 60_000]);
    const deadlineMs = pick([0, 0, 0, 0, 2_000, 90_000]);
    const n = ids.length + 1;
    ids.push(
      log.ingest(n, {
        taskId: taskIdOf(n),
        tenant: pick(tenants),
        type: pick(types),
        priority: 1 + below(4),
        ...(delayMs > 0 ? { runAt: log.now + delayMs } : {}),
        ...(deadlineMs > 0 ? { deadlineAt: log.now + deadlineMs } : {}),
        ...(dice() < 0.3 ? { orderingKey: `order-${below(3)}` } : {}),
        ...(dice() < 0.3 ? { concurrencyKey: `limited-${below(2)}` } : {}),
        ...(dice() < 0.2 ? { policy: { maxRetries: 1 } } : {}),
        version: pick(versions),
      }),
    );
  };
  while (log.events.length < events) {
    log.now += pick([0, 1, 20, 400]);
    const id = ids.length === 0 || dice() < 0.15 ? undefined : pick(ids.slice(-40));
    const state = id === undefined ? undefined : log.state(id);
    if (id === undefined || state === undefined) {
      ingest();
      continue;
    }
    const moves: (() => void)[] = [
      () => log.requestCancel(id),
      () => log.do(id, dispatcher, { kind: 'carry' }),
      () =>
        log.reschedule(id, pick([{ priority: 1 }, { runAt: log.now + 700 }, { priority: 4, runAt: null }])),
      () => log.do(id, dispatcher, { kind: 'requeue' }),
    ];
    const likely: (() => void)[] = [
      () => log.do(id, dispatcher, { kind: 'queue', inlinePayload: dice() < 0.5 }),
      () => log.claim(id),
      () => log.start(id),
      () => pick([() => log.complete(id), () => log.fail(id), () => log.lose(id)])(),
      () => {
        if (deadLetterReason(state, log.now) !== undefined) log.do(id, dispatcher, { kind: 'dead_letter' });
      },
      () => {
        if (TERMINAL.has(state.status)) log.replay(id);
      },
    ];
    try {
      pick(dice() < 0.1 ? moves : likely)();
    } catch (error) {
      // The rules refused it: something else happens.
      if (!(error instanceof TaskledgerError)) throw error;
    }
  }
  return log;
}
