import type { Json } from '../domain/json.ts';
import type { Parsed } from './handler.ts';

export interface ResultLimits {
  /** As UTF-8 JSON. */
  readonly maxBytes: number;
  readonly maxDepth: number;
}

/**
 * A handler's result as the log will hold it: a JSON snapshot, so that later changes by the handler do not matter.
 * `undefined` means no result. Refused: what JSON cannot hold (circular, BigInt, functions), what is too large or too
 * deep, and NUL or half a surrogate pair in a string, which Postgres cannot hold.
 */
export function storableResult(result: unknown, limits: ResultLimits): Parsed<Json | undefined> {
  if (result === undefined) return { ok: true, value: undefined };
  let text: string | undefined;
  try {
    text = JSON.stringify(result);
  } catch (error) {
    return refused(`it is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (text === undefined) return refused(`it is a ${typeof result}, which JSON cannot hold`);
  const bytes = Buffer.byteLength(text);
  if (bytes > limits.maxBytes)
    return refused(
      `it has ${bytes} bytes, the limit is ${limits.maxBytes}; store it elsewhere and return a reference`,
    );
  if (text.length > 2 * limits.maxDepth && depthOf(text) > limits.maxDepth)
    return refused(`it is nested deeper than ${limits.maxDepth} levels`);
  const unstorable = UNSTORABLE.exec(text);
  if (unstorable !== null) return refused(`it contains ${unstorable[1]}, which Postgres cannot store`);
  return { ok: true, value: JSON.parse(text) as Json };
}

/** An escape for NUL or for half a surrogate pair: JSON.stringify leaves whole pairs unescaped. */
const UNSTORABLE = /(?<!\\)(?:\\\\)*(\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2}))/;

const refused = (why: string): Parsed<never> => ({
  ok: false,
  reason: `cannot be stored: ${why}`,
});

function depthOf(json: string): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let i = 0; i < json.length; i++) {
    const char = json.charCodeAt(i);
    if (inString) {
      if (char === BACKSLASH) i++;
      else if (char === QUOTE) inString = false;
    } else if (char === QUOTE) inString = true;
    else if (char === OPEN_BRACKET || char === OPEN_BRACE) deepest = Math.max(deepest, ++depth);
    else if (char === CLOSE_BRACKET || char === CLOSE_BRACE) depth--;
  }
  return deepest;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
