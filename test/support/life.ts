import type { Command, CommandOf } from '../../src/domain/commands.ts';
import { decide } from '../../src/domain/decide.ts';
import type { Result } from '../../src/domain/errors.ts';
import type { Actor, Recorded, TaskEvent } from '../../src/domain/events.ts';
import { evolve, type TaskState } from '../../src/domain/task.ts';

/** The words of given/when/then for a task's life: one command a function, and `given(...)` to live through some. */

export const TASK_ID = '01890a5d-ac96-774b-bcce-b302099a8057';
/** The clock of every command unless it says otherwise, in ms since 1970. */
export const NOW = Date.parse('2026-01-01T00:00:00Z');

export const worker = (id: string): Actor => ({ kind: 'worker', id });
const dispatcher: Actor = { kind: 'dispatcher', id: 'd1' };
const user: Actor = { kind: 'user', id: 'ada' };

type Overrides<K extends Command['kind']> = Partial<CommandOf<K>>;
const meta = (actor: Actor) => ({ eventId: eventId(0), at: NOW, actor });
const eventId = (n: number): string => `00000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`;
const born = { taskId: TASK_ID, tenant: 'acme', type: 'transcode' };

export const ingest = (over: Overrides<'ingest'> = {}): CommandOf<'ingest'> => ({
  ...meta({ kind: 'intake', id: 'i1' }),
  ...born,
  kind: 'ingest',
  payload: { clip: 1 },
  priority: 2,
  ...over,
});
export const reject = (): CommandOf<'reject'> => ({
  ...meta({ kind: 'intake', id: 'i1' }),
  ...born,
  kind: 'reject',
  reasons: [{ code: 'request_invalid', field: 'payload', message: 'is missing' }],
});
export const queue = (over: Overrides<'queue'> = {}): CommandOf<'queue'> => ({
  ...meta(dispatcher),
  kind: 'queue',
  inlinePayload: true,
  ...over,
});
export const requeue = (): CommandOf<'requeue'> => ({ ...meta(dispatcher), kind: 'requeue' });
export const claim = (by = 'w1'): CommandOf<'claim'> => ({ ...meta(worker(by)), kind: 'claim' });
export const start = (by = 'w1', attempt = 1): CommandOf<'start'> => ({
  ...meta(worker(by)),
  kind: 'start',
  attempt,
});
export const complete = (by = 'w1', attempt = 1): CommandOf<'complete'> => ({
  ...meta(worker(by)),
  kind: 'complete',
  attempt,
  result: { frames: 250 },
  runMs: 12,
});
export const fail = (by = 'w1', attempt = 1, over: Overrides<'fail'> = {}): CommandOf<'fail'> => ({
  ...meta(worker(by)),
  kind: 'fail',
  attempt,
  error: { name: 'Error', message: 'codec missing' },
  dice: 0.5,
  ...over,
});
export const lose = (attempt = 1, by = 'w2'): CommandOf<'lose'> => ({
  ...meta(worker(by)),
  kind: 'lose',
  attempt,
  reason: 'lease_expired',
  dice: 0.5,
});
export const deadLetter = (at = NOW): CommandOf<'dead_letter'> => ({
  ...meta(dispatcher),
  at,
  kind: 'dead_letter',
});
export const requestCancel = (): CommandOf<'request_cancel'> => ({
  ...meta(user),
  kind: 'request_cancel',
  reason: 'wrong clip',
});
export const cancel = (actor: Actor = worker('w1')): CommandOf<'cancel'> => ({
  ...meta(actor),
  kind: 'cancel',
  reason: 'wrong clip',
});
export const replay = (over: Overrides<'replay'> = {}): CommandOf<'replay'> => ({
  ...meta(user),
  kind: 'replay',
  note: 'codec installed',
  ...over,
});
export const discard = (): CommandOf<'discard'> => ({
  ...meta(user),
  kind: 'discard',
  reason: 'the clip is gone',
});
export const reschedule = (over: Overrides<'reschedule'> = {}): CommandOf<'reschedule'> => ({
  ...meta(user),
  kind: 'reschedule',
  priority: 1,
  ...over,
});
export const debounce = (over: Overrides<'debounce'> = {}): CommandOf<'debounce'> => ({
  ...meta({ kind: 'intake', id: 'i1' }),
  kind: 'debounce',
  payload: { clip: 2 },
  priority: 2,
  submittedAt: NOW + 1,
  windowMs: 1_000,
  once: false,
  ...over,
});
export const carry = (): CommandOf<'carry'> => ({ ...meta(dispatcher), kind: 'carry' });

/** What became of a command, in one word: the kind of its event, or the code of its refusal. */
export const outcome = (result: Result<TaskEvent>): string =>
  result.ok ? result.value.kind : result.error.code;

export interface Life {
  readonly state: TaskState | undefined;
  readonly events: readonly Recorded[];
  /** Decides without storing. */
  readonly when: (command: Command) => Result<TaskEvent>;
  /** The event that the command gives; throws its refusal. */
  readonly gives: (command: Command) => TaskEvent;
}

/** Lives through the commands, each of which must be accepted. Sequences are 10, 20, …; every event has its own id. */
export function given(...commands: readonly Command[]): Life {
  const events: Recorded[] = [];
  let state: TaskState | undefined;
  const accepted = (command: Command): TaskEvent => {
    const result = decide(state, { ...command, eventId: eventId(events.length + 1) });
    if (!result.ok) throw result.error;
    return result.value;
  };
  for (const command of commands) {
    const recorded = { seq: 10 * (events.length + 1), storedAt: command.at + 7, event: accepted(command) };
    events.push(recorded);
    state = evolve(state, recorded);
  }
  return { state, events, when: (command) => decide(state, command), gives: accepted };
}
