import type { TaskError } from '../domain/events.ts';

/** Bounds of what an error may add to the log, in characters. */
export const MAX_MESSAGE = 8 * 1024;
export const MAX_STACK = 16 * 1024;
const MAX_NAME = 200;

/**
 * Reduces whatever a handler threw to what the log can hold. Never throws: thrown values may be hostile (throwing
 * getters, proxies, circular objects).
 */
export function describeThrown(thrown: unknown): TaskError {
  try {
    return thrown instanceof Error ? describeError(thrown) : describeValue(thrown);
  } catch {
    return { name: 'UnreadableError', message: 'The thrown value could not be read' };
  }
}

function describeError(error: Error): TaskError {
  const code = codeOf(error);
  const stack = textOf(error.stack);
  return {
    name: storable(textOf(error.name) || 'Error', MAX_NAME),
    message: storable(textOf(error.message), MAX_MESSAGE),
    ...(code === undefined ? {} : { code }),
    ...(stack === '' ? {} : { stack: storable(stack, MAX_STACK) }),
  };
}

function describeValue(thrown: unknown): TaskError {
  const code = typeof thrown === 'object' && thrown !== null ? codeOf(thrown) : undefined;
  return {
    name: 'NonError',
    message: storable(`thrown: ${showValue(thrown)}`, MAX_MESSAGE),
    ...(code === undefined ? {} : { code }),
  };
}

function showValue(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  const kind = Object.prototype.toString.call(value);
  try {
    return (JSON.stringify(value) as string | undefined) ?? kind;
  } catch {
    return `${kind} with ${Object.keys(value).slice(0, 20).join(', ')}`;
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

function codeOf(error: object): string | undefined {
  const { code } = error as { code?: unknown };
  if (typeof code !== 'string' && typeof code !== 'number') return undefined;
  return storable(String(code), MAX_NAME);
}

const LONE_SURROGATE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;

/** Cut to `max` characters, and without what Postgres refuses in text: NUL and half a surrogate pair. */
function storable(text: string, max: number): string {
  const cut =
    text.length > max ? `${text.slice(0, max - 40)}… (${text.length} characters)`.slice(0, max) : text;
  return cut.replaceAll('\0', '\uFFFD').replace(LONE_SURROGATE, '\uFFFD');
}
