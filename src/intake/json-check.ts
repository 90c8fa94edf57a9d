import { type Issue, issue } from './issue.ts';

export interface JsonLimits {
  /** Most UTF-8 bytes of the value's JSON text. */
  readonly maxBytes: number;
  /** Deepest nesting of containers; `{}` has depth 1. */
  readonly maxDepth: number;
}

/**
 * The first reason why a value cannot be a payload, or undefined when it can: everything that JSON can hold, except
 * what the read models could not store (NUL, lone surrogates) or what is unsafe to read back (`__proto__`).
 *
 * One walk, with its own stack: nesting costs heap, never the call stack. The walk adds up an upper bound of the size, so
 * that the exact size is only computed for values near the limit. Undefined object members are allowed, since
 * JSON.stringify leaves them out: publishers inside the process submit such objects.
 */
export function checkJson(value: unknown, field: string, limits: JsonLimits): Issue | undefined {
  const walk = new JsonWalk(field, limits);
  const found = walk.run(value);
  if (found !== undefined) return found;
  if (walk.sizeBound <= limits.maxBytes) return undefined;
  const bytes = Buffer.byteLength(JSON.stringify(value));
  return bytes <= limits.maxBytes
    ? undefined
    : issue('payload_too_large', { field, bytes, limit: limits.maxBytes });
}

/** The reason why a text cannot be stored, or undefined. */
export function checkText(text: string, field: string): Issue | undefined {
  if (text.includes('\0')) return issue('payload_has_nul', { field });
  if (!(text as WellFormedText).isWellFormed()) return issue('payload_has_invalid_unicode', { field });
  return undefined;
}

/** Since Node 20; TypeScript knows it from ES2024 on. */
type WellFormedText = string & { isWellFormed(): boolean };

/** A container being walked: its children, and where it hangs. `keys` is undefined for an array. */
interface Frame {
  readonly children: readonly unknown[];
  readonly keys: readonly string[] | undefined;
  next: number;
}

/** Longest JSON text of a finite double, with its comma. */
const NUMBER_BYTES = 26;
/** A UTF-16 unit takes 3 bytes of UTF-8 at most, or 6 as an escape. */
const UNIT_BYTES = 6;

class JsonWalk {
  /** No smaller than the UTF-8 length of the JSON text. */
  sizeBound = 0;
  readonly #field: string;
  readonly #maxDepth: number;
  readonly #maxBytes: number;
  readonly #stack: Frame[] = [];

  constructor(field: string, { maxDepth, maxBytes }: JsonLimits) {
    this.#field = field;
    this.#maxDepth = maxDepth;
    this.#maxBytes = maxBytes;
  }

  run(root: unknown): Issue | undefined {
    let found = this.#visit(root);
    while (found === undefined) {
      const frame = this.#stack.at(-1);
      if (frame === undefined) return undefined;
      if (frame.next === frame.children.length) {
        this.#stack.pop();
        continue;
      }
      found = this.#visit(frame.children[frame.next++]);
    }
    return found;
  }

  #visit(value: unknown): Issue | undefined {
    switch (typeof value) {
      case 'string':
        this.sizeBound += value.length * UNIT_BYTES + 3;
        return value.includes('\0') || !(value as WellFormedText).isWellFormed()
          ? checkText(value, this.#path())
          : undefined;
      case 'number':
        this.sizeBound += NUMBER_BYTES;
        return Number.isFinite(value)
          ? undefined
          : issue('payload_number_out_of_range', { field: this.#path() });
      case 'boolean':
        this.sizeBound += 6;
        return undefined;
      case 'object':
        if (value !== null) return this.#enter(value);
        this.sizeBound += 5;
        return undefined;
      case 'undefined':
        return this.#stack.at(-1)?.keys === undefined ? this.#notJson(value) : undefined;
      default:
        return this.#notJson(value);
    }
  }

  #enter(value: object): Issue | undefined {
    if (this.#stack.length === this.#maxDepth)
      return issue('payload_too_deep', { field: this.#field, limit: this.#maxDepth });
    this.sizeBound += 3;
    if (Array.isArray(value)) {
      // A sparse array cannot make the walk long: its length alone would be over the limit as JSON text.
      if (value.length > this.#maxBytes) return this.#tooLarge(value.length);
      this.#stack.push({ children: value, keys: undefined, next: 0 });
      return undefined;
    }
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null) return this.#notJson(value);
    const keys = Object.keys(value);
    const children = Object.values(value);
    this.#stack.push({ children, keys, next: 0 });
    return this.#checkKeys(keys);
  }

  #checkKeys(keys: readonly string[]): Issue | undefined {
    for (const key of keys) {
      this.sizeBound += key.length * UNIT_BYTES + 4;
      const unfit = checkText(key, this.#path());
      if (unfit !== undefined) return unfit;
      if (key === '__proto__') return issue('payload_key_forbidden', { field: `${this.#path()}.${key}` });
    }
    return undefined;
  }

  #notJson(value: unknown): Issue {
    const what = typeof value === 'object' ? (value?.constructor?.name ?? 'object') : typeof value;
    const field = this.#path();
    return issue('request_invalid', {
      field,
      reason: `${field} is not a JSON value (${what}); use plain objects, arrays, strings, finite numbers, booleans and null`,
    });
  }

  #tooLarge(bytes: number): Issue {
    return issue('payload_too_large', { field: this.#field, bytes, limit: this.#maxBytes });
  }

  /** Where the walk is: rebuilt from the stack, only when something is wrong. */
  #path(): string {
    let path = this.#field;
    for (const { keys, next } of this.#stack) {
      if (next === 0) break;
      path += keys === undefined ? `[${next - 1}]` : member(keys[next - 1] ?? '');
    }
    return path.length > MAX_PATH ? `${path.slice(0, MAX_PATH)}…` : path;
  }
}

const MAX_PATH = 200;
const PLAIN_KEY = /^[A-Za-z_$][\w$-]{0,60}$/;
/** Keys that are no plain words are quoted; JSON.stringify also escapes what could not be stored. */
const member = (key: string): string => (PLAIN_KEY.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`);
