import { EVENT_KINDS, EVENT_VERSION, type TaskEvent } from './events.ts';

/** Turns an event of version n into one of version n + 1. Index 0 would hold the step from 1 to 2. */
type Upcast = (event: Record<string, unknown>) => Record<string, unknown>;
const UPCASTS: readonly Upcast[] = [];

const kinds: ReadonlySet<unknown> = new Set(EVENT_KINDS);

export class UnreadableEvent extends Error {
  override readonly name = 'UnreadableEvent';
}

/**
 * Reads an event from the JSON text of a log message, raised to the current version.
 *
 * The check is shallow on purpose: every writer goes through `decide`, whose output the schema tests cover, and a
 * full zod parse of 15 000 events a second would cost more than the rest of a reader. Throws UnreadableEvent.
 */
export function decodeEvent(text: string): TaskEvent {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw new UnreadableEvent('not JSON', { cause });
  }
  if (typeof parsed !== 'object' || parsed === null) throw new UnreadableEvent('not an object');
  return upcast(parsed as Record<string, unknown>);
}

export function upcast(event: Record<string, unknown>, upcasts: readonly Upcast[] = UPCASTS): TaskEvent {
  let current = event;
  const target = upcasts === UPCASTS ? EVENT_VERSION : upcasts.length + 1;
  const version = current['v'];
  if (typeof version !== 'number' || version < 1 || version > target) {
    throw new UnreadableEvent(`version ${String(version)} is not between 1 and ${target}`);
  }
  for (let v = version; v < target; v++) {
    const step = upcasts[v - 1];
    if (step === undefined) throw new UnreadableEvent(`no upcast from version ${v}`);
    current = { ...step(current), v: v + 1 };
  }
  if (!kinds.has(current['kind'])) throw new UnreadableEvent(`unknown kind ${String(current['kind'])}`);
  if (
    typeof current['taskId'] !== 'string' ||
    typeof current['tenant'] !== 'string' ||
    typeof current['type'] !== 'string'
  ) {
    throw new UnreadableEvent('taskId, tenant or type is missing');
  }
  if (typeof current['data'] !== 'object' || current['data'] === null)
    throw new UnreadableEvent('data is missing');
  return current as unknown as TaskEvent;
}

/** The JSON text that is stored. */
export const encodeEvent = (event: TaskEvent): string => JSON.stringify(event);
