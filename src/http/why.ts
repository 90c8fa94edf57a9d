import { z } from 'zod';
import type { Recorded, Status } from '../domain/events.ts';
import { RUNNING, type TaskState, TERMINAL } from '../domain/task.ts';
import { type RegisteredWorker, seemsAlive } from '../registry/workers.ts';

/** One reason; instants are ISO 8601. What a kind says besides is its own. */
export const FactSchema = z.looseObject({ kind: z.string() });
export type Fact = z.infer<typeof FactSchema>;

export interface WhyInputs {
  readonly state: TaskState;
  readonly last: Recorded;
  /** What the leading dispatcher says, the most telling first; undefined when none answered. */
  readonly dispatcher: readonly Fact[] | undefined;
  /** Undefined when the registry did not answer. */
  readonly workers: readonly RegisteredWorker[] | undefined;
  readonly now: number;
}

export interface Why {
  readonly sentence: string;
  readonly facts: readonly Fact[];
}

/** Why a task is not running, or that it is: one sentence, and the facts behind it. */
export function why(inputs: WhyInputs): Why {
  const { state } = inputs;
  if (TERMINAL.has(state.status)) return ended(inputs);
  if (RUNNING.has(state.status)) return running(inputs);
  const facts = [...(inputs.dispatcher ?? [{ kind: 'no_dispatcher' }]).map(readable), ...workersOf(inputs)];
  const told = facts.find(({ kind }) => kind === 'no_workers' && state.status === 'QUEUED') ?? facts[0];
  const rest = facts.find((fact) => fact !== told && (fact.kind === 'no_workers' || fact.kind === 'paused'));
  const reasons = [told, rest].flatMap((fact) => (fact === undefined ? [] : [text(fact, state)]));
  return { sentence: `Task waits (${state.status}): ${reasons.join('; ')}.`, facts };
}

function ended({ state, last }: WhyInputs): Why {
  const at = new Date(last.storedAt).toISOString();
  return {
    sentence: `Task has ended: ${state.status} since ${at}.`,
    facts: [{ kind: 'ended', status: state.status, at }],
  };
}

function running({ state, last, workers, now }: WhyInputs): Why {
  const { status, attempt, holder, cancelRequested } = state;
  const since = new Date(last.storedAt).toISOString();
  const worker = workers?.find(({ id }) => id === holder);
  const silentMs = worker === undefined ? null : Math.max(0, now - worker.seenAt);
  const fact = { kind: 'running', status, attempt, worker: holder, since, silentMs, cancelRequested };
  const heard =
    worker === undefined
      ? 'which is not registered: its lease will be found lost'
      : `last heard of ${((silentMs ?? 0) / 1_000).toFixed(1)} s ago${seemsAlive(worker, now) ? '' : ', too long'}`;
  const cancel = cancelRequested ? '; its cancellation is requested' : '';
  return {
    sentence: `Task runs: attempt ${attempt} since ${since} on worker ${holder ?? '(unknown)'}, ${heard}${cancel}.`,
    facts: [fact],
  };
}

/** Whether the type has workers, and how many of their slots are taken. */
function workersOf({ state, workers, now }: WhyInputs): Fact[] {
  if (workers === undefined) return [{ kind: 'workers_unknown' }];
  const serving = workers.filter((worker) => worker.types.includes(state.type) && seemsAlive(worker, now));
  if (serving.length === 0) return [{ kind: 'no_workers', type: state.type }];
  const slots = serving.reduce((sum, { concurrency }) => sum + concurrency, 0);
  const taken = serving.reduce((sum, { active }) => sum + active.length, 0);
  return [{ kind: 'workers', workers: serving.length, slots, running: taken }];
}

/** The dispatcher's instants are ms since 1970. */
const readable = (fact: Fact): Fact => ({
  ...fact,
  ...Object.fromEntries(
    (['dueAt', 'freeAt'] as const).flatMap((name) =>
      typeof fact[name] === 'number' ? [[name, new Date(fact[name]).toISOString()]] : [],
    ),
  ),
});

function text(fact: Fact, { type }: { readonly type: string; readonly status: Status }): string {
  const said = (name: string): string => plain(fact[name]);
  switch (fact.kind) {
    case 'no_dispatcher':
      return 'no dispatcher leads, so nothing is handed out';
    case 'no_workers':
      return `no worker for ${type} is registered`;
    case 'waiting_for_worker':
      return `it was handed to the workers, who have ${said('ready')} before them and run ${said('running')}`;
    case 'workers_busy':
      return `the workers are busy: ${said('running')} tasks run and ${said('ready')} are handed out`;
    case 'due_later':
      return `it is due at ${said('dueAt')}${fact['retry'] === true ? ' after a failed attempt' : ''}, as one of ${said('delayed')} of its type that wait for a time`;
    case 'paused':
      return `${pausedScope(fact)} is paused by ${said('actor')} (${said('reason')})${
        fact['until'] === undefined ? '' : ` until ${said('until')}`
      }`;
    case 'limit':
      return `the limit ${said('limit')} of ${said('value')} is reached`;
    case 'new_leader':
      return 'the dispatcher has just taken over, and what has a limit waits until it must know of all that runs';
    case 'ordering_key':
      return `task ${said('heldBy')} with the same ordering key goes first`;
    case 'behind':
      return `${said('count')} tasks of its tenant and priority go first`;
    case 'being_queued':
      return 'it is being handed to the workers at this moment';
    case 'ending':
      return 'it is about to end';
    default:
      return fact.kind.replaceAll('_', ' ');
  }
}

const pausedScope = ({ tenant, type }: Fact): string =>
  [tenant === undefined ? '' : `tenant ${plain(tenant)}`, type === undefined ? '' : `type ${plain(type)}`]
    .filter((part) => part !== '')
    .join(', ');

/** A fact's value as it stands in a sentence. */
function plain(value: unknown): string {
  if (value === undefined || value === null) return '?';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
