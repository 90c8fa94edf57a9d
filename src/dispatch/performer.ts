import { randomUUID } from 'node:crypto';
import type { Command } from '../domain/commands.ts';
import { decide } from '../domain/decide.ts';
import type { Actor, TaskEvent } from '../domain/events.ts';
import type { Json } from '../domain/json.ts';
import { deadLetterReason, payloadIn, type TaskState } from '../domain/task.ts';
import type { EventLog } from '../log/event-log.ts';
import type { Logger } from '../observe/log.ts';
import type { Clock } from '../platform/clock.ts';
import type { DispatchCore } from './core.ts';
import type { Decision } from './decisions.ts';
import { type LiveTask, PayloadSize, stateOf } from './live-task.ts';

/** When a decision is tried again whose append failed or stayed unknown. */
const RETRY_MS = 500;

export interface PerformerParts {
  readonly log: Pick<EventLog, 'append' | 'readEvent' | 'readState'>;
  readonly core: DispatchCore;
  readonly clock: Clock;
  readonly actor: Actor;
  readonly logger: Logger;
  readonly inlinePayloadBytes: number;
  /** Whether it may still append: a former leader must not send again what it had under way. */
  readonly may: () => boolean;
  /** Called when an outcome other than `stored` may have given the core something to decide. */
  onReturned(): void;
}

/** What became of decisions since the start. */
export interface PerformerStats {
  readonly underWay: number;
  readonly queued: number;
  readonly deadLettered: number;
  readonly cancelled: number;
  readonly carried: number;
  readonly conflicts: number;
  readonly failures: number;
}

/**
 * Turns the core's intents into appends, many at a time over different tasks, and tells the core what became of those
 * that were not stored. Every rule of the task's life is asked of the domain's `decide`.
 */
export class Performer {
  readonly #parts: PerformerParts;
  #underWay = 0;
  #idle: (() => void)[] = [];
  readonly #done = { queue: 0, dead_letter: 0, cancel: 0, carry: 0 };
  #conflicts = 0;
  #failures = 0;

  constructor(parts: PerformerParts) {
    this.#parts = parts;
  }

  perform(intent: Decision): void {
    this.#underWay += 1;
    void this.#run(intent);
  }

  /** Resolves when nothing is under way, at the latest after `timeoutMs`. */
  whenIdle(timeoutMs: number): Promise<void> {
    if (this.#underWay === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.#idle.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  stats(): PerformerStats {
    const { queue, dead_letter, cancel, carry } = this.#done;
    return {
      underWay: this.#underWay,
      queued: queue,
      deadLettered: dead_letter,
      cancelled: cancel,
      carried: carry,
      conflicts: this.#conflicts,
      failures: this.#failures,
    };
  }

  /** (1) the task's state (2) decide (3) append (4) tell the core, unless stored. */
  async #run(intent: Decision): Promise<void> {
    const { core, clock, logger } = this.#parts;
    const { task, seq } = intent;
    let returned = true;
    try {
      const state = hasAll(intent) ? stateOf(task, payloadOf(intent)) : await this.#read(intent);
      if (state === undefined) return;
      const command = this.#command(intent, state);
      const decided = decide(state, command);
      if (!decided.ok) {
        this.#failures += 1;
        logger.warn(
          { taskId: task.id, command: command.kind, error: decided.error.code },
          'refused by the rules',
        );
        core.unresolved(task, seq, clock.now() + RETRY_MS);
        return;
      }
      returned = !(await this.#append(intent, decided.value));
      if (!returned) this.#done[command.kind] += 1;
    } catch (error) {
      this.#failures += 1;
      logger.warn({ taskId: task.id, seq, error: String(error) }, 'not decided yet; trying again');
      core.unresolved(task, seq, clock.now() + RETRY_MS);
    } finally {
      this.#underWay -= 1;
      if (this.#underWay === 0) for (const resolve of this.#idle.splice(0)) resolve();
      if (returned) this.#parts.onReturned();
    }
  }

  /** True when stored. */
  async #append({ task, seq }: Decision, event: TaskEvent): Promise<boolean> {
    const { core, clock, log, logger } = this.#parts;
    const outcome = await log.append(event, seq, this.#parts.may);
    if (outcome.status === 'stored') return true;
    this.#conflicts += 1;
    if (outcome.lastSeq > seq) {
      core.refused(task, seq);
      return false;
    }
    // The server did not say what moved the task, or has forgotten it.
    const state = await log.readState(task.tenant, task.id, seq);
    if (state === undefined) {
      logger.error({ taskId: task.id, tenant: task.tenant, seq }, 'the log has forgotten a live task');
      core.vanished(task);
    } else if (state.seq > seq) core.refused(task, seq);
    else core.unresolved(task, seq, clock.now() + RETRY_MS);
    return false;
  }

  /** The state with what the core does not keep; undefined when the task has moved on or is gone. */
  async #read({ task, seq, kind }: Decision): Promise<TaskState | undefined> {
    const { core, clock, log, logger } = this.#parts;
    let state: TaskState | undefined;
    // A CARRIED event holds all there is to know; the core does not keep all.
    if (!task.known || kind === 'carry') {
      state = await log.readState(task.tenant, task.id, seq);
      if (state === undefined) {
        logger.error({ taskId: task.id, tenant: task.tenant, seq }, 'the log has forgotten a live task');
        core.vanished(task);
        return undefined;
      }
      if (!task.known && state.seq === seq && task.seq === seq && !core.learn(task, state, clock.now()))
        return undefined;
    }
    let payload = state?.payload;
    const payloadSeq = state?.payloadSeq ?? task.payloadSeq;
    if ((kind === 'queue' || kind === 'carry') && payload === undefined && payloadSeq !== undefined) {
      const holder = await log.readEvent(payloadSeq);
      payload = holder === undefined ? undefined : payloadIn(holder.event);
      if (payload === undefined)
        logger.error({ taskId: task.id, tenant: task.tenant, payloadSeq }, 'the log has forgotten a payload');
    }
    if (task.seq !== seq || (state !== undefined && state.seq !== seq)) {
      core.refused(task, seq);
      return undefined;
    }
    return kind === 'carry' && state !== undefined ? { ...state, payload } : stateOf(task, payload);
  }

  #command({ kind, task }: Decision, state: TaskState): Command & { kind: Decision['kind'] } {
    const { actor, clock } = this.#parts;
    const at = clock.now();
    const trace = task.rare?.trace;
    const meta = { eventId: randomUUID(), at, actor, ...(trace === undefined ? {} : { trace }) };
    if (kind === 'carry') return { ...meta, kind };
    // What was read may say more than what was seen when the decision was made.
    if (state.cancelRequested) return { ...meta, kind: 'cancel' };
    const pardon = kind === 'queue' && task.forgiven;
    const reason = deadLetterReason(pardon ? { ...state, next: undefined } : state, at);
    if (kind === 'dead_letter' || reason !== undefined) return { ...meta, kind: 'dead_letter' };
    return {
      ...meta,
      kind: 'queue',
      ...(pardon ? { pardon } : {}),
      inlinePayload: this.#isSmall(task, state.payload),
    };
  }

  #isSmall(task: LiveTask, payload: Json | undefined): boolean {
    if (task.payloadSize !== PayloadSize.unknown) return task.payloadSize === PayloadSize.small;
    return (
      payload !== undefined && Buffer.byteLength(JSON.stringify(payload)) <= this.#parts.inlinePayloadBytes
    );
  }
}

const hasAll = ({ kind, task }: Decision): boolean =>
  task.known &&
  kind !== 'carry' &&
  (kind !== 'queue' || task.payload !== undefined || task.payloadSize === PayloadSize.large);

const payloadOf = ({ kind, task }: Decision): Json | undefined =>
  kind === 'queue' && task.payload !== undefined ? (JSON.parse(task.payload) as Json) : undefined;
