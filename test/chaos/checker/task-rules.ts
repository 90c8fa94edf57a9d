import type { Recorded } from '../../../src/domain/events.ts';
import {
  attemptsInRound,
  evolve,
  policyOf,
  RUNNING,
  type TaskState,
  TERMINAL,
} from '../../../src/domain/task.ts';
import type { Violation } from './evidence.ts';
import { LEGAL_FROM } from './legal-moves.ts';
import { type Lives, lineOf } from './lives.ts';

/** The log's times are those of whichever server leads; the clocks of one machine agree better than this. */
const CLOCK_SLACK_MS = 100;

/** What each task's own events say: `legal`, `attempts`, `completions`, `terminal`. */
export function checkLives(lives: Lives): Violation[] {
  const violations: Violation[] = [];
  for (const life of lives.values()) violations.push(...checkLife(life));
  return violations;
}

function checkLife(life: readonly Recorded[]): Violation[] {
  const found: Violation[] = [];
  let state: TaskState | undefined;
  let completions = 0;
  for (const [index, recorded] of life.entries()) {
    const report = (rule: Violation['rule'], message: string): void =>
      void found.push({ rule, message, witness: life.slice(0, index + 1).map(lineOf) });
    if (recorded.event.kind === 'COMPLETED') {
      completions += 1;
      if (completions === 2) report('completions', `task ${recorded.event.taskId} is completed twice`);
    }
    const illegal = whyIllegal(state, recorded);
    if (illegal !== undefined) {
      report('legal', illegal);
      // What follows an illegal event would only repeat it.
      return found;
    }
    const offence = state === undefined ? undefined : whyAgainstPolicy(state, recorded);
    if (offence !== undefined) report('attempts', offence);
    state = evolve(state, recorded);
  }
  if (state !== undefined && !TERMINAL.has(state.status))
    found.push({
      rule: 'terminal',
      message: `task ${state.id} is still ${state.status}`,
      witness: life.map(lineOf),
    });
  return found;
}

function whyIllegal(state: TaskState | undefined, recorded: Recorded): string | undefined {
  const { event } = recorded;
  if (!LEGAL_FROM[event.kind].includes(event.from))
    return `${event.kind} may not leave ${event.from ?? 'nothing'}`;
  if (state !== undefined && event.type !== state.type) return `type ${event.type} is not ${state.type}`;
  if (state?.discarded) return `${event.kind} after it was discarded`;
  try {
    evolve(state, recorded);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return whyMiscounted(state, recorded) ?? whyNotTheHolder(state, recorded);
}

function whyMiscounted(state: TaskState | undefined, { event }: Recorded): string | undefined {
  const attempt = (state?.attempt ?? 0) + (event.kind === 'CLAIMED' ? 1 : 0);
  const round = (state?.round ?? 1) + (event.kind === 'REPLAYED' ? 1 : 0);
  if (event.attempt !== attempt) return `${event.kind} says attempt ${event.attempt}, but it is ${attempt}`;
  if (event.round !== round) return `${event.kind} says round ${event.round}, but it is ${round}`;
  return undefined;
}

function whyNotTheHolder(state: TaskState | undefined, { event }: Recorded): string | undefined {
  if (state === undefined || !RUNNING.has(state.status)) return undefined;
  switch (event.kind) {
    case 'PROCESSING':
    case 'COMPLETED':
    case 'FAILED':
    case 'CANCELLED':
      return event.actor.id === state.holder
        ? undefined
        : `${event.kind} comes from ${event.actor.id}, but ${state.holder} holds the attempt`;
    case 'RETRY_CLAIMED':
      return event.data.lostWorker === state.holder
        ? undefined
        : `RETRY_CLAIMED names ${event.data.lostWorker}, but ${state.holder} holds the attempt`;
    default:
      return undefined;
  }
}

function whyAgainstPolicy(state: TaskState, { event, storedAt }: Recorded): string | undefined {
  const { maxRetries, maxLost, backoffFloorMs, backoffCapMs } = policyOf(state);
  const attempts = attemptsInRound(state);
  switch (event.kind) {
    case 'CLAIMED':
      return attempts + 1 > maxRetries + 1
        ? `attempt ${attempts + 1} of the round, but the policy allows ${maxRetries + 1}`
        : undefined;
    case 'QUEUED':
      if (state.dueAt !== undefined && storedAt < state.dueAt - CLOCK_SLACK_MS)
        return `queued ${state.dueAt - storedAt} ms before it is due`;
      return whyNotPardoned(state, event.data.facts);
    case 'FAILED':
    case 'RETRY_CLAIMED': {
      const { next } = event.data;
      if (!('retryInMs' in next)) return undefined;
      if (attempts > maxRetries)
        return `a retry after attempt ${attempts}, but the policy allows ${maxRetries}`;
      const floor = Math.min(backoffFloorMs, backoffCapMs);
      return next.retryInMs < floor || next.retryInMs > backoffCapMs
        ? `a retry in ${next.retryInMs} ms is not within ${floor} and ${backoffCapMs}`
        : undefined;
    }
    case 'DEAD_LETTER':
      if (event.data.reason === 'retries' && attempts <= maxRetries)
        return `dead for want of retries after ${attempts} attempts of ${maxRetries + 1}`;
      if (event.data.reason === 'poison' && state.facts.lost <= maxLost)
        return `poison after ${state.facts.lost} lost attempts, but the policy bears ${maxLost}`;
      if (
        event.data.reason === 'deadline' &&
        storedAt < (state.facts.deadlineAt ?? Infinity) - CLOCK_SLACK_MS
      )
        return `dead of a deadline that has not passed`;
      return undefined;
    default:
      return undefined;
  }
}

const MOST_PARDONS = 3;

/** Only the loss of a last attempt is pardoned, one at a time and a few a round; without a pardon what is final stays so. */
function whyNotPardoned({ status, next, facts }: TaskState, queued: TaskState['facts']): string | undefined {
  const { pardoned: before = 0 } = facts;
  const { pardoned = 0 } = queued;
  const isFinal = next !== undefined && 'final' in next;
  if (pardoned === before) return isFinal ? 'queued although its last attempt was final' : undefined;
  if (!isFinal || status !== 'RETRY_CLAIMED') return 'pardoned, but its last attempt was no lost one';
  return pardoned === before + 1 && pardoned <= MOST_PARDONS
    ? undefined
    : `pardoned ${pardoned} times after ${before}`;
}
