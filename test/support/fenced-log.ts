import type { Command, CommandOf } from '../../src/domain/commands.ts';
import { decide } from '../../src/domain/decide.ts';
import type { Actor, Recorded, TaskEvent } from '../../src/domain/events.ts';
import type { Json } from '../../src/domain/json.ts';
import { evolve, type TaskState } from '../../src/domain/task.ts';
import type { AppendOutcome } from '../../src/log/event-log.ts';

/** A UUID from a small number, so that tests can name tasks. */
export const taskIdOf = (n: number): string => `00000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`;

/** The rules of the real log in memory: every append is fenced by the task's last sequence, and nothing is changed but by events. */
export class FencedLog {
  readonly events: Recorded[] = [];
  readonly #states = new Map<string, TaskState>();
  /** The log's clock, in ms since 1970. */
  now: number;

  constructor(now: number) {
    this.now = now;
  }

  append(event: TaskEvent, expectedSeq: number): AppendOutcome {
    const state = this.#states.get(event.taskId);
    const lastSeq = state?.seq ?? 0;
    if (lastSeq !== expectedSeq) return { status: 'conflict', lastSeq };
    const recorded: Recorded = { seq: this.events.length + 1, storedAt: this.now, event };
    this.#states.set(event.taskId, evolve(state, recorded));
    this.events.push(recorded);
    return { status: 'stored', seq: recorded.seq };
  }

  state(taskId: string): TaskState | undefined {
    return this.#states.get(taskId);
  }

  get states(): Iterable<TaskState> {
    return this.#states.values();
  }

  /** Decides on the current state and appends; throws the rules' refusal. */
  do(taskId: string, actor: Actor, command: CommandPart): Recorded {
    const state = this.#states.get(taskId);
    const decided = decide(state, {
      eventId: taskIdOf(0xe000_0000 + this.events.length),
      at: this.now,
      actor,
      ...command,
    } as Command);
    if (!decided.ok) throw decided.error;
    this.append(decided.value, state?.seq ?? 0);
    return this.events.at(-1) as Recorded;
  }

  ingest(n: number, over: Partial<CommandOf<'ingest'>> = {}): string {
    const taskId = over.taskId ?? taskIdOf(n);
    this.do(taskId, intake, {
      kind: 'ingest',
      taskId,
      tenant: 'acme',
      type: 'transcode',
      payload: { n },
      priority: 2,
      ...over,
    });
    return taskId;
  }

  claim(taskId: string): void {
    this.do(taskId, worker, { kind: 'claim' });
  }

  start(taskId: string): void {
    this.do(taskId, worker, { kind: 'start', attempt: this.state(taskId)?.attempt ?? 0 });
  }

  complete(taskId: string): void {
    this.do(taskId, worker, { kind: 'complete', attempt: this.state(taskId)?.attempt ?? 0, result: null });
  }

  fail(taskId: string): void {
    this.do(taskId, worker, {
      kind: 'fail',
      attempt: this.state(taskId)?.attempt ?? 0,
      error: { name: 'Error', message: 'no luck' },
      dice: 0.5,
    });
  }

  lose(taskId: string): void {
    this.do(taskId, worker, {
      kind: 'lose',
      attempt: this.state(taskId)?.attempt ?? 0,
      reason: 'lease_expired',
      dice: 0.5,
    });
  }

  requestCancel(taskId: string): void {
    this.do(taskId, user, { kind: 'request_cancel' });
  }

  reschedule(taskId: string, over: { priority?: 1 | 2 | 3 | 4; runAt?: number | null }): void {
    this.do(taskId, user, { kind: 'reschedule', ...over });
  }

  debounce(taskId: string, over: { payload: Json; submittedAt: number; windowMs: number }): void {
    this.do(taskId, intake, { kind: 'debounce', priority: 2, once: false, ...over });
  }

  replay(taskId: string): void {
    this.do(taskId, user, { kind: 'replay' });
  }
}

type CommandPart = Command extends infer C
  ? C extends Command
    ? Omit<C, 'eventId' | 'at' | 'actor'>
    : never
  : never;

const intake: Actor = { kind: 'intake', id: 'i1' };
const worker: Actor = { kind: 'worker', id: 'w1' };
const user: Actor = { kind: 'user', id: 'ada' };
