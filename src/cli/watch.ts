import { TaskledgerError } from '../domain/errors.ts';
import type { EventKind, Status } from '../domain/events.ts';
import { TERMINAL } from '../domain/task.ts';
import type { EventAnswer } from './answers.ts';
import type { Session } from './connection.ts';
import type { FeedMessage } from './event-stream.ts';
import { Refusal } from './request.ts';
import { eventLine } from './task-text.ts';
import { type ExitCode, exitOf } from './terminal.ts';

/** Pauses before the stream is opened again, in ms; after the last of them nobody answers. */
const PAUSES_MS = [250, 500, 1_000, ...Array<number>(30).fill(2_000)];

/**
 * Prints a task's events until its end: its history from the read models, then the live feed from the last event of it.
 * A stream that breaks off is opened again after the last position, so that each event is printed once.
 */
export async function watch(session: Session, id: string): Promise<ExitCode> {
  const { api, tenant } = session;
  const print = printer(session);
  // The state is read before the events: nothing that belongs to this end is left unprinted.
  const { task } = await api.task(id, { tenant });
  const history = await allEvents(session, id);
  history.forEach(print);
  const ended = TERMINAL.has(task.status) ? task.status : endOf(history);
  if (ended !== undefined) return exitOf(ended);

  let position = history.at(-1)?.seq ?? 0;
  for (let tries = 0; ; ) {
    try {
      for await (const message of api.follow(id, { tenant, after: position })) {
        tries = 0;
        const events = await eventsIn(message);
        events.forEach(print);
        const end = endOf(events);
        if (end !== undefined) return exitOf(end);
        if ('position' in message) position = message.position;
      }
    } catch (error) {
      if (!passes(error) || tries >= PAUSES_MS.length) throw error;
    }
    await session.terminal.pause(PAUSES_MS[Math.min(tries, PAUSES_MS.length - 1)] ?? 0);
    tries += 1;
  }

  async function eventsIn(message: FeedMessage): Promise<readonly EventAnswer[]> {
    if (message.kind === 'event') return [message.event];
    // What has aged out of the log is in the read models.
    return message.kind === 'gap' ? allEvents(session, id) : [];
  }
}

/** The whole history of a task, from the read models. */
export async function allEvents(session: Session, id: string): Promise<EventAnswer[]> {
  const events: EventAnswer[] = [];
  let cursor: string | undefined;
  do {
    const page = await session.api.events(id, { tenant: session.tenant, cursor, limit: 200 });
    events.push(...page.events);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return events;
}

/** Prints an event unless it, or one after it, was printed. */
function printer({ terminal, json }: Session): (event: EventAnswer) => void {
  let printed = 0;
  let sinceMs: number | undefined;
  return (event) => {
    if (event.seq <= printed) return;
    printed = event.seq;
    sinceMs ??= Date.parse(event.storedAt);
    const line = json ? JSON.stringify(event) : eventLine(event, { sinceMs, width: terminal.columns });
    terminal.out(`${line}\n`);
  };
}

/** The status in which a task is after these events, when it has ended. What follows an end without a new round leaves it. */
function endOf(events: readonly EventAnswer[]): Status | undefined {
  const kind: EventKind | undefined = events.findLast((event) => !LEAVES_STATUS.has(event.kind))?.kind;
  return kind !== undefined && TERMINAL.has(kind as Status) ? (kind as Status) : undefined;
}
const LEAVES_STATUS: ReadonlySet<EventKind> = new Set([
  'CANCEL_REQUESTED',
  'CARRIED',
  'DISCARDED',
  'RESCHEDULED',
]);

/** An API that restarts or is busy: it may answer the next time. */
const passes = (error: unknown): boolean =>
  error instanceof Refusal
    ? error.retryable
    : error instanceof TaskledgerError &&
      (error.code === 'api_unreachable' || error.code === 'answer_unexpected');
