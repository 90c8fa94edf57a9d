import type { Command, CommandOf } from './commands.ts';
import { err, ok, type Result } from './errors.ts';
import {
  type DeadLetterReason,
  EVENT_VERSION,
  type EventKind,
  type EventOf,
  type Facts,
  FIRST_VERSION,
  type NextStep,
  type TaskEvent,
} from './events.ts';
import { DEFAULT_PRIORITY } from './names.ts';
import { backoffMs } from './policy.ts';
import {
  attemptsInRound,
  deadLetterReason,
  mayBePardoned,
  policyOf,
  RUNNING,
  type TaskState,
  TERMINAL,
  WAITING,
} from './task.ts';

/**
 * What event a command gives in a state, or why none. Pure: no clock, no ids, no I/O.
 * Errors: those of `catalogue/tasks.ts`. Appending the event with `expected = state?.seq ?? 0` is the caller's part.
 */
export function decide(state: TaskState | undefined, command: Command): Result<TaskEvent> {
  if (command.kind === 'ingest' || command.kind === 'reject') {
    if (state !== undefined) return err('task_exists', { taskId: command.taskId });
    return ok(command.kind === 'ingest' ? ingested(command) : rejected(command));
  }
  if (state === undefined) return err('task_missing', { taskId: '(unknown)' });
  switch (command.kind) {
    case 'queue':
      return queue(state, command);
    case 'requeue':
      return requeue(state, command);
    case 'claim':
      return state.status === 'QUEUED'
        ? ok(next(state, command, 'CLAIMED', {}, { attempt: state.attempt + 1 }))
        : illegal(state, command);
    case 'start':
      return (
        owned(state, command) ??
        (state.status === 'CLAIMED' ? ok(next(state, command, 'PROCESSING', {})) : illegal(state, command))
      );
    case 'complete':
      return (
        owned(state, command) ??
        (state.status === 'PROCESSING'
          ? ok(next(state, command, 'COMPLETED', optional({ result: command.result, runMs: command.runMs })))
          : illegal(state, command))
      );
    case 'fail':
      return (
        owned(state, command) ??
        (state.status === 'PROCESSING' ? ok(failed(state, command)) : illegal(state, command))
      );
    case 'lose':
      return lose(state, command);
    case 'dead_letter':
      return deadLetter(state, command);
    case 'request_cancel':
      return requestCancel(state, command);
    case 'cancel':
      return cancel(state, command);
    case 'replay':
      return replay(state, command);
    case 'discard':
      return discard(state, command);
    case 'reschedule':
      return reschedule(state, command);
    case 'debounce':
      return debounce(state, command);
    case 'carry':
      return carry(state, command);
    default:
      return command satisfies never;
  }
}

function ingested(command: CommandOf<'ingest'>): EventOf<'INGESTED'> {
  const { payload, fingerprint, idempotencyKey, policy, runAt, deadlineAt, schedule } = command;
  const { orderingKey, concurrencyKey, debounce, throttle } = command;
  const version = command.version === FIRST_VERSION ? undefined : command.version;
  const keys = { orderingKey, concurrencyKey, debounce, throttle };
  return {
    ...first(command, command.priority),
    kind: 'INGESTED',
    data: {
      payload,
      ...optional({ fingerprint, idempotencyKey, policy, runAt, deadlineAt, version, schedule, ...keys }),
    },
  };
}

const rejected = (command: CommandOf<'reject'>): EventOf<'REJECTED'> => ({
  ...first(command, DEFAULT_PRIORITY),
  kind: 'REJECTED',
  data: { reasons: command.reasons },
});

function queue(state: TaskState, command: CommandOf<'queue'>): Result<TaskEvent> {
  if (!WAITING.has(state.status) || state.status === 'QUEUED') return illegal(state, command);
  if (state.cancelRequested) return err('cancel_pending', { taskId: state.id });
  const pardoned = command.pardon === true && mayBePardoned(state);
  if (state.next !== undefined && 'final' in state.next && !pardoned)
    return err('retries_exhausted', { taskId: state.id });
  const inline = command.inlinePayload && state.payload !== undefined;
  const facts = state.facts.debounce === undefined ? state.facts : handedOut(state.facts);
  return ok(
    next(state, command, 'QUEUED', {
      facts: pardoned ? withoutLastAttempt(facts) : facts,
      ...(inline ? { payload: state.payload } : optional({ payloadSeq: state.payloadSeq })),
    }),
  );
}

/** What is handed out can be pushed no more. */
const handedOut = ({ debounce: _debounce, ...facts }: Facts): Facts => facts;

/** The lost attempt counts as one of the rounds before, so that the task keeps as many as it had. */
const withoutLastAttempt = (facts: Facts): Facts => ({
  ...facts,
  attemptsBefore: facts.attemptsBefore + 1,
  lost: Math.max(0, facts.lost - 1),
  pardoned: (facts.pardoned ?? 0) + 1,
});

/** Like a CARRIED: it stands for all that came before, so it must hold the payload, however large. */
function requeue(state: TaskState, command: CommandOf<'requeue'>): Result<TaskEvent> {
  if (state.status !== 'QUEUED') return illegal(state, command);
  const { payload, facts, fingerprint } = state;
  if (payload === undefined) return err('payload_unknown', { taskId: state.id });
  return ok(next(state, command, 'QUEUED', { facts, payload, ...optional({ fingerprint }) }));
}

function failed(state: TaskState, command: CommandOf<'fail'>): TaskEvent {
  const step = nextStep(state, command.dice, command.final ?? notRetryable(state, command));
  return next(state, command, 'FAILED', {
    error: command.error,
    next: step,
    ...optional({ runMs: command.runMs, workerVersion: command.workerVersion }),
  });
}

function lose(state: TaskState, command: CommandOf<'lose'>): Result<TaskEvent> {
  if (!RUNNING.has(state.status) || state.holder === undefined) return illegal(state, command);
  if (state.attempt !== command.attempt)
    return err('lease_lost', { attempt: command.attempt, taskId: state.id, worker: state.holder });
  return ok(
    next(state, command, 'RETRY_CLAIMED', {
      lostWorker: state.holder,
      reason: command.reason,
      next: nextStep(state, command.dice, isPoison(state) ? 'poison' : undefined),
    }),
  );
}

function deadLetter(state: TaskState, command: CommandOf<'dead_letter'>): Result<TaskEvent> {
  if (!WAITING.has(state.status)) return illegal(state, command);
  const reason = deadLetterReason(state, command.at);
  return reason === undefined
    ? err('retries_left', { taskId: state.id })
    : ok(next(state, command, 'DEAD_LETTER', { reason, facts: state.facts }));
}

function replay(state: TaskState, command: CommandOf<'replay'>): Result<TaskEvent> {
  if (state.status !== 'DEAD_LETTER' && state.status !== 'CANCELLED') return illegal(state, command);
  if (state.discarded) return err('task_discarded', { taskId: state.id });
  const { note, payload, policy } = command;
  const kept = optional({
    fingerprint: state.fingerprint,
    payload: payload === undefined ? state.payload : undefined,
  });
  return ok(
    next(
      state,
      command,
      'REPLAYED',
      { ...optional({ note, payload, policy }), carried: { facts: state.facts, ...kept } },
      { round: state.round + 1 },
    ),
  );
}

function discard(state: TaskState, command: CommandOf<'discard'>): Result<TaskEvent> {
  if (state.status !== 'DEAD_LETTER') return illegal(state, command);
  if (state.discarded) return err('task_discarded', { taskId: state.id });
  return ok(next(state, command, 'DISCARDED', { reason: command.reason }));
}

function requestCancel(state: TaskState, command: CommandOf<'request_cancel'>): Result<TaskEvent> {
  if (TERMINAL.has(state.status)) return err('task_terminal', { taskId: state.id, status: state.status });
  if (WAITING.has(state.status))
    return ok(next(state, command, 'CANCELLED', optional({ reason: command.reason })));
  if (state.cancelRequested) return err('cancel_pending', { taskId: state.id });
  return ok(next(state, command, 'CANCEL_REQUESTED', optional({ reason: command.reason })));
}

function cancel(state: TaskState, command: CommandOf<'cancel'>): Result<TaskEvent> {
  if (TERMINAL.has(state.status)) return err('task_terminal', { taskId: state.id, status: state.status });
  if (!state.cancelRequested) return err('cancel_not_requested', { taskId: state.id });
  if (RUNNING.has(state.status) && state.holder !== command.actor.id)
    return leaseLost(state, state.attempt, command.actor.id);
  return ok(next(state, command, 'CANCELLED', optional({ reason: command.reason })));
}

/** Only a task that nobody has been handed: a QUEUED one may be claimed at any moment, and its place in line is behind it. */
function reschedule(state: TaskState, command: CommandOf<'reschedule'>): Result<TaskEvent> {
  const { id, status } = state;
  if (TERMINAL.has(status)) return err('task_terminal', { taskId: id, status });
  if (status === 'QUEUED' || RUNNING.has(status)) return err('task_handed_out', { taskId: id, status });
  if (state.cancelRequested) return err('cancel_pending', { taskId: id });
  if (state.next !== undefined && 'final' in state.next) return err('retries_exhausted', { taskId: id });
  const { runAt, priority = state.priority } = command;
  const dueAt = runAt === undefined ? (state.dueAt ?? null) : runAt;
  const fromPriority = priority === state.priority ? undefined : state.priority;
  const debouncedAt = state.facts.debounce?.at;
  return ok(
    next(
      state,
      command,
      'RESCHEDULED',
      { dueAt, ...optional({ runAt, fromPriority, debouncedAt }) },
      { priority },
    ),
  );
}

/** The last submission of the key wins, as long as nobody has been handed the task. */
function debounce(state: TaskState, command: CommandOf<'debounce'>): Result<TaskEvent> {
  const { id, status, facts } = state;
  if (TERMINAL.has(status)) return err('task_terminal', { taskId: id, status });
  if (status !== 'INGESTED') return err('task_handed_out', { taskId: id, status });
  if (facts.debounce === undefined) return illegal(state, command);
  const { submittedAt, windowMs, payload, priority } = command;
  if (command.once && submittedAt < facts.debounce.at) return err('debounce_superseded', { taskId: id });
  const debouncedAt = Math.max(submittedAt, facts.debounce.at);
  const dueAt = Math.min(debouncedAt + windowMs, facts.debounce.until);
  const fromPriority = priority === state.priority ? undefined : state.priority;
  return ok(
    next(
      state,
      command,
      'RESCHEDULED',
      { dueAt, payload, debouncedAt, ...optional({ fromPriority }) },
      { priority },
    ),
  );
}

/** The events before a CARRIED may age out, so it must hold the payload: a sequence could soon point at nothing. */
function carry(state: TaskState, command: CommandOf<'carry'>): Result<TaskEvent> {
  if (TERMINAL.has(state.status)) return err('task_terminal', { taskId: state.id, status: state.status });
  const { payload } = state;
  if (payload === undefined) return err('payload_unknown', { taskId: state.id });
  return ok(next(state, command, 'CARRIED', { state: { ...carriedState(state), payload } }));
}

/** Whether one more lost attempt is too many. */
const isPoison = (state: TaskState): boolean => state.facts.lost + 1 > policyOf(state).maxLost;

const notRetryable = (state: TaskState, { error }: CommandOf<'fail'>) => {
  const { notRetryable: names } = policyOf(state);
  return names.includes(error.name) || (error.code !== undefined && names.includes(error.code))
    ? 'not_retryable'
    : undefined;
};

function nextStep(state: TaskState, dice: number, final: DeadLetterReason | undefined): NextStep {
  if (final !== undefined) return { final };
  const policy = policyOf(state);
  const used = attemptsInRound(state);
  return used > policy.maxRetries ? { final: 'retries' } : { retryInMs: backoffMs(policy, used, dice) };
}

/** An error unless the attempt is the live one and the actor holds it. */
function owned(state: TaskState, command: Command & { attempt: number }) {
  const mine = state.holder === command.actor.id && state.attempt === command.attempt;
  return mine ? undefined : leaseLost(state, command.attempt, command.actor.id);
}

const leaseLost = (state: TaskState, attempt: number, worker: string) =>
  err('lease_lost', { attempt, taskId: state.id, worker });
const illegal = (state: TaskState, command: Command) =>
  err('transition_illegal', { command: command.kind, taskId: state.id, status: state.status });

function first(command: CommandOf<'ingest'> | CommandOf<'reject'>, priority: number) {
  return {
    v: EVENT_VERSION as typeof EVENT_VERSION,
    id: command.eventId,
    taskId: command.taskId,
    tenant: command.tenant,
    type: command.type,
    from: null,
    round: 1,
    attempt: 0,
    priority,
    at: command.at,
    actor: command.actor,
    ...optional({ trace: command.trace }),
  };
}

function next<K extends EventKind>(
  state: TaskState,
  command: Command,
  kind: K,
  data: EventOf<K>['data'],
  moved: { round?: number; attempt?: number; priority?: number } = {},
): TaskEvent {
  return {
    v: EVENT_VERSION,
    id: command.eventId,
    kind,
    taskId: state.id,
    tenant: state.tenant,
    type: state.type,
    from: state.status,
    round: moved.round ?? state.round,
    attempt: moved.attempt ?? state.attempt,
    priority: moved.priority ?? state.priority,
    at: command.at,
    actor: command.actor,
    ...optional({ trace: command.trace }),
    data,
    // The union cannot be narrowed by a generic kind; the parameter types above tie kind and data together.
  } as unknown as TaskEvent;
}

function carriedState(state: TaskState): Omit<EventOf<'CARRIED'>['data']['state'], 'payload'> {
  const { status, facts, cancelRequested, holder, dueAt, next: step, fingerprint } = state;
  return { status, facts, cancelRequested, ...optional({ holder, dueAt, next: step, fingerprint }) };
}

/** Leaves out what is undefined: an absent fact is an absent key in the log. A loop, since every event passes here: 3 times faster than Object.entries. */
function optional<T extends object>(parts: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const present: Partial<T> = {};
  for (const key in parts) if (parts[key] !== undefined) present[key] = parts[key];
  return present as { [K in keyof T]?: Exclude<T[K], undefined> };
}
