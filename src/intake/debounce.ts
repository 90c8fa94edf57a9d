import { createHash, randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { CommandOf } from '../domain/commands.ts';
import { decide } from '../domain/decide.ts';
import type { EventKind, Recorded, TaskEvent } from '../domain/events.ts';
import type { TaskState } from '../domain/task.ts';
import type { EventLog } from '../log/event-log.ts';
import { execute } from '../log/handle.ts';
import { stateOf } from '../log/open.ts';
import type { Cells } from '../registry/cells.ts';
import { taskIdAfter } from './identity.ts';
import { issue } from './issue.ts';
import { accepted, outcomeOf, refused, refusedBy, type SubmitOutcome } from './outcome.ts';
import type { Window } from './window.ts';

/** A task of a key's chain, or where the chain begins (`seq` 0, no task). */
export const PlaceSchema = z.strictObject({ id: z.uuid(), seq: z.int().min(0) });
export type Place = z.infer<typeof PlaceSchema>;

export interface DebounceParts {
  readonly log: Pick<EventLog, 'append' | 'readLasts' | 'bounds'>;
  /** Where the chain of each key has come to. */
  readonly places: Cells<Place>;
}

export interface Debounced {
  readonly command: CommandOf<'ingest'>;
  readonly window: Extract<Window, { kind: 'debounce' }>;
  /** The servers' time of the submission. */
  readonly submittedAt: number;
  /** It may come a second time: the same `submittedAt` then. */
  readonly once: boolean;
}

/** A place may be an old one of its chain only as long as the log remembers all that came after it. */
const REMEMBERED_MS = 60_000;
const MAX_HOPS = 1_000;
const BEFORE_HANDING_OUT: ReadonlySet<EventKind> = new Set(['INGESTED', 'RESCHEDULED', 'CARRIED']);

/**
 * Debounce: the tasks of a key are a chain, each id made from the one before, and a task is only begun when the one before
 * has been handed out or has ended. Two processes that begin the next one at once make the same id, so the log accepts
 * one, and the other pushes it: at most one task of a key waits, whoever submits and whoever dies in between.
 *
 * The bucket only says where to begin on the chain: an old place costs hops, not correctness. Submissions that come
 * to one process while one of their key is under way are appended as one, the last.
 */
export class Debouncer {
  readonly #parts: DebounceParts;
  readonly #places = new LRUCache<string, Place>({ max: 10_000, ttl: REMEMBERED_MS });
  readonly #lines = new Map<string, Line>();

  constructor(parts: DebounceParts) {
    this.#parts = parts;
  }

  submit(debounced: Debounced): Promise<SubmitOutcome> {
    const key = cellKey(debounced);
    const line = this.#lines.get(key);
    if (line === undefined) {
      this.#lines.set(key, {});
      return this.#run(key, debounced);
    }
    const { next } = line;
    if (next !== undefined) {
      if (!debounced.once || debounced.submittedAt >= next.debounced.submittedAt) next.debounced = debounced;
      return next.outcome;
    }
    let begin = (): void => undefined;
    const turn = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const waiting: Waiting = {
      debounced,
      begin,
      outcome: turn.then(() => this.#run(key, waiting.debounced)),
    };
    line.next = waiting;
    return waiting.outcome;
  }

  async #run(key: string, debounced: Debounced): Promise<SubmitOutcome> {
    try {
      return await outcomeOf(() => this.#walk(key, debounced));
    } finally {
      const next = this.#lines.get(key)?.next;
      if (next === undefined) this.#lines.delete(key);
      else {
        this.#lines.set(key, {});
        next.begin();
      }
    }
  }

  async #walk(key: string, debounced: Debounced): Promise<SubmitOutcome> {
    const from =
      this.#places.get(key) ??
      (await this.#parts.places.change(key, (known) => known ?? { id: randomUUID(), seq: 0 }, {
        fresh: true,
      }));
    let place = from;
    for (let hops = 0; hops < MAX_HOPS; hops += 1) {
      const pushed = place.seq === 0 ? undefined : await this.#push(place, debounced);
      if (pushed !== undefined) {
        await this.#remember(key, place, from);
        return pushed;
      }
      const begun = await this.#begin(taskIdAfter(debounced.command.tenant, place.id), debounced);
      if ('ok' in begun) return begun;
      place = begun.place;
      if (!begun.isNew) continue;
      await this.#remember(key, place, from);
      return accepted(place.id, place.seq);
    }
    return refused([issue('append_conflict', { taskId: place.id })]);
  }

  /** Pushes the task while it waits; undefined when it does no longer, and the submission is not one that it had. */
  async #push({ id: taskId, seq }: Place, debounced: Debounced): Promise<SubmitOutcome | undefined> {
    const { log } = this.#parts;
    const { submittedAt, once, window, command } = debounced;
    const { tenant, payload, priority, eventId, at, actor, trace } = command;
    const joined = (joinedSeq: number): SubmitOutcome => ({
      ...accepted(taskId, joinedSeq),
      deduplicated: 'debounce',
    });
    const lasts = await this.#read(tenant, { id: taskId, seq });
    const state = waitingState(lasts);
    if (state !== undefined) {
      const result = await execute(
        { append: log.append, readState: async (...of) => waitingState(await log.readLasts(...of)) },
        { tenant, taskId, known: state },
        () => ({
          kind: 'debounce',
          eventId,
          at,
          actor,
          trace,
          payload,
          priority,
          submittedAt,
          windowMs: window.windowMs,
          once,
        }),
      );
      if (result.ok) return joined(result.value.seq);
      if (result.error.code === 'debounce_superseded') return joined(state.seq);
      if (result.error.code === 'append_conflict') return refusedBy(result.error);
    }
    const had = once ? lastSubmission(await this.#read(tenant, { id: taskId, seq })) : undefined;
    return had !== undefined && had.at >= submittedAt ? joined(had.seq) : undefined;
  }

  /** Nothing when the log has forgotten the task: one that waits announces itself again before that. */
  async #read(tenant: string, { id, seq }: Place): Promise<readonly Recorded[]> {
    const { log } = this.#parts;
    const lasts = await log.readLasts(tenant, id);
    if (lasts.some((last) => last.seq >= seq)) return lasts;
    // To make sure of what is not there is dear, and needless where nothing can be.
    const { firstSeq } = await log.bounds();
    return lasts.length === 0 && seq < firstSeq ? [] : log.readLasts(tenant, id, seq);
  }

  async #begin(
    taskId: string,
    { command, window, submittedAt }: Debounced,
  ): Promise<SubmitOutcome | { readonly place: Place; readonly isNew: boolean }> {
    const until = submittedAt + window.maxWaitMs;
    const decided = decide(undefined, {
      ...command,
      taskId,
      runAt: Math.min(submittedAt + window.windowMs, until),
      debounce: { key: window.key, until, at: submittedAt },
    });
    if (!decided.ok) return refusedBy(decided.error);
    const outcome = await this.#parts.log.append(decided.value, 0);
    if (outcome.status === 'stored') return { place: { id: taskId, seq: outcome.seq }, isNew: true };
    // Another has begun it. Whatever became of it since, it is a place of the chain; without its sequence it cannot be read for sure.
    const { lastSeq } = outcome;
    if (lastSeq === 0) return refused([issue('append_conflict', { taskId })]);
    return { place: { id: taskId, seq: lastSeq }, isNew: false };
  }

  /** Throws `log_unavailable`: a chain whose place is not kept may one day be entered where the log remembers nothing. */
  async #remember(key: string, place: Place, from: Place): Promise<void> {
    if (place.id !== from.id)
      await this.#parts.places.change(key, (known) =>
        known !== undefined && known.seq > place.seq ? known : place,
      );
    this.#places.set(key, place);
  }
}

interface Line {
  next?: Waiting;
}

interface Waiting {
  debounced: Debounced;
  readonly begin: () => void;
  readonly outcome: Promise<SubmitOutcome>;
}

const cellKey = ({ command: { tenant, type }, window: { key } }: Debounced): string =>
  `${tenant}.${createHash('sha256').update(`${type} ${key}`).digest('base64url')}`;

/** The state while nobody has been handed the task; its payload may be an earlier one when an operator moved it last. */
const waitingState = (lasts: readonly Recorded[]): TaskState | undefined =>
  lasts.length > 0 && lasts.every(({ event }) => BEFORE_HANDING_OUT.has(event.kind))
    ? stateOf(lasts)
    : undefined;

/** The last submission that the task has taken in. */
function lastSubmission(
  lasts: readonly Recorded[],
): { readonly at: number; readonly seq: number } | undefined {
  let last: { at: number; seq: number } | undefined;
  for (const { event, seq } of lasts) {
    const at = debouncedAt(event);
    if (at !== undefined) last = { at, seq };
  }
  return last;
}

function debouncedAt(event: TaskEvent): number | undefined {
  if (event.kind === 'INGESTED') return event.data.debounce?.at;
  return event.kind === 'RESCHEDULED' ? event.data.debouncedAt : undefined;
}
