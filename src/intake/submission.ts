import { z } from 'zod';
import { FIRST_VERSION, TaskKeySchema, VersionSchema } from '../domain/events.ts';
import type { Json } from '../domain/json.ts';
import { NameSchema, type Priority, PrioritySchema } from '../domain/names.ts';
import { type PolicyOverride, PolicyOverrideSchema } from '../domain/policy.ts';
import { type TypeSettings, withTypeSettings } from '../registry/type-settings.ts';
import { fingerprintOf, newTaskId, taskIdOfKey } from './identity.ts';
import { parseInstant } from './instants.ts';
import { type Issue, issue } from './issue.ts';
import { checkJson, checkText, type JsonLimits } from './json-check.ts';
import { checkWindow, DebounceSchema, ThrottleSchema, type Window, windowOf } from './window.ts';

const TEN_YEARS_MS = 10 * 366 * 86_400_000;
const KeyText = z.string().min(1).max(255);
const instant = z.union([z.string(), z.number()]);

/** What a submitter sends: the body of `POST /v1/tasks`, an item of a batch, and (without `type`) a NATS submission. */
export const TaskInputSchema = z.strictObject({
  type: NameSchema.describe('Task type'),
  payload: z.unknown().describe('Any JSON value; null for none'),
  id: KeyText.optional().describe('Same as idempotencyKey'),
  idempotencyKey: KeyText.optional().describe(
    'A UUID becomes the task id; any other text is turned into a UUIDv5 of tenant and key',
  ),
  priority: PrioritySchema.optional().describe('1 is served first, 4 last; 2 by default'),
  runAt: instant
    .optional()
    .describe('Not before this instant: ISO 8601 with a zone, or milliseconds since 1970'),
  delayMs: z.int().min(0).max(TEN_YEARS_MS).optional().describe('Not before this long from the submission'),
  deadlineAt: instant.optional().describe('A task that has not ended by then goes to the dead-letter queue'),
  policy: PolicyOverrideSchema.optional().describe("Parts of the type's policy that this task replaces"),
  version: VersionSchema.optional().describe(
    'What a worker must know to run it: only workers registered for this version of the type are given it; 1 by default',
  ),
  orderingKey: TaskKeySchema.optional().describe(
    'Tasks of one tenant, type and key run one at a time, in the order of submission; retries hold the key',
  ),
  concurrencyKey: TaskKeySchema.optional().describe(
    "As many tasks of one tenant, type and key run at a time as the type's concurrencyKeyLimit says: 1 by default",
  ),
  throttle: ThrottleSchema.optional(),
  debounce: DebounceSchema.optional(),
  tenant: NameSchema.optional().describe("For operators' keys: the tenant to submit for"),
});
export type TaskInput = z.input<typeof TaskInputSchema>;

/** A submission that may become an event. */
export interface Submission {
  readonly taskId: string;
  readonly tenant: string;
  readonly type: string;
  readonly payload: Json;
  readonly priority: Priority;
  readonly policy: PolicyOverride | undefined;
  readonly runAt: number | undefined;
  readonly deadlineAt: number | undefined;
  /** Undefined for version 1. */
  readonly version: number | undefined;
  readonly orderingKey: string | undefined;
  readonly concurrencyKey: string | undefined;
  /** The task that it becomes stands for others of its key too, and has another id than `taskId`. */
  readonly window: Window | undefined;
  /** The submitter's key when the task id was derived from it; a UUID key is the id. */
  readonly idempotencyKey: string | undefined;
  /** Set when the submitter gave a key: only then a repeat is to be expected. */
  readonly fingerprint: string | undefined;
}

export interface SubmissionContext {
  readonly tenant: string;
  /** The key that came beside the input (`Idempotency-Key`); one in the input must be equal to it. */
  readonly key: string | undefined;
  /** The id of a task without a key; a new UUIDv7 when absent. */
  readonly fallbackId?: string;
  readonly limits: JsonLimits;
  /** How long the log surely remembers a task. */
  readonly longestWindowMs: number;
  /** The clock of `delayMs`, in ms since 1970. */
  readonly now: number;
  readonly settingsOf: (type: string) => TypeSettings | undefined;
}

export type Parsed =
  | { readonly ok: true; readonly submission: Submission }
  | { readonly ok: false; readonly issues: readonly Issue[] };

/** Checks everything about a submission that can be known without reading the log, and reports all that is wrong. */
export function parseSubmission(input: unknown, context: SubmissionContext): Parsed {
  const notObject = checkObject(input);
  if (notObject !== undefined) return { ok: false, issues: [notObject] };
  const envelope = TaskInputSchema.safeParse(input);
  const issues = envelope.success
    ? []
    : envelope.error.issues.flatMap((found) => envelopeIssues(found, input));
  const raw = input as Readonly<Record<string, unknown>>;
  push(issues, checkPayload(raw, context.limits));
  push(issues, checkStrings(raw));
  push(issues, checkTenant(raw, context.tenant));
  const key = givenKey(raw, context.key);
  push(issues, key.issue);
  const times = parseTimes(raw, context.now);
  issues.push(...times.issues);
  const longestMs = context.longestWindowMs;
  issues.push(...checkWindow(raw, { longestMs, hasKey: key.key !== undefined }));
  if (!envelope.success || issues.length > 0) return { ok: false, issues };
  const { type, payload, priority, policy, version, orderingKey, concurrencyKey } = envelope.data;
  const { tenant, fallbackId, now } = context;
  const taskId = key.key === undefined ? (fallbackId ?? newTaskId(now)) : taskIdOfKey(tenant, key.key);
  return {
    ok: true,
    submission: {
      taskId,
      tenant,
      type,
      payload: payload as Json,
      ...withTypeSettings(context.settingsOf(type), { priority, policy }),
      runAt: times.runAt,
      deadlineAt: times.deadlineAt,
      version: version === FIRST_VERSION ? undefined : version,
      orderingKey,
      concurrencyKey,
      window: windowOf(envelope.data, longestMs),
      idempotencyKey: taskId === key.key?.toLowerCase() ? undefined : key.key,
      fingerprint: key.key === undefined ? undefined : fingerprintOf(type, payload),
    },
  };
}

/** The idempotency key of an input, even of one that is otherwise invalid. Keys given in several places must be equal. */
export function givenKey(
  input: unknown,
  beside: string | undefined,
): { readonly key: string | undefined; readonly issue: Issue | undefined } {
  const { id, idempotencyKey } = (input ?? {}) as Readonly<Record<string, unknown>>;
  const given = [beside, idempotencyKey, id].filter((key) => typeof key === 'string');
  const [key] = given;
  if (key === undefined) return { key, issue: undefined };
  const field =
    beside === undefined ? (idempotencyKey === undefined ? 'id' : 'idempotencyKey') : 'Idempotency-Key';
  if (given.some((other) => other !== key))
    return { key, issue: invalid(field, 'The idempotency keys of this task differ; send one of them') };
  if (key.length === 0 || key.length > 255)
    return { key: undefined, issue: invalid(field, `${field} must have 1 to 255 characters`) };
  const unfit = checkText(key, field);
  return { key: unfit === undefined ? key : undefined, issue: unfit };
}

function checkObject(input: unknown): Issue | undefined {
  if (typeof input !== 'object' || input === null || Array.isArray(input))
    return issue('request_invalid', { reason: 'A task must be a JSON object' });
  return Object.hasOwn(input, '__proto__')
    ? issue('payload_key_forbidden', { field: '__proto__' })
    : undefined;
}

function checkPayload({ payload }: Readonly<Record<string, unknown>>, limits: JsonLimits): Issue | undefined {
  return payload === undefined
    ? invalid('payload', 'payload is missing; send null for a task without one')
    : checkJson(payload, 'payload', limits);
}

/** A task goes to the tenant that its key or subject stands for. */
function checkTenant({ tenant }: Readonly<Record<string, unknown>>, expected: string): Issue | undefined {
  return typeof tenant === 'string' && tenant !== expected
    ? issue('tenant_forbidden', { field: 'tenant', tenant: shown(tenant) })
    : undefined;
}

/** The free texts outside the payload: they are stored as well. */
function checkStrings({
  policy,
  orderingKey,
  concurrencyKey,
}: Readonly<Record<string, unknown>>): Issue | undefined {
  for (const [field, key] of Object.entries({ orderingKey, concurrencyKey })) {
    const unfit = typeof key === 'string' ? checkText(key, field) : undefined;
    if (unfit !== undefined) return unfit;
  }
  return policy === undefined ? undefined : checkJson(policy, 'policy', { maxBytes: 65_536, maxDepth: 8 });
}

interface Times {
  readonly issues: readonly Issue[];
  readonly runAt?: number | undefined;
  readonly deadlineAt?: number | undefined;
}

const NO_TIMES: Times = Object.freeze({ issues: [] });

function parseTimes(raw: Readonly<Record<string, unknown>>, now: number): Times {
  const { runAt: runAtText, delayMs, deadlineAt: deadlineText } = raw;
  if (runAtText === undefined && delayMs === undefined && deadlineText === undefined) return NO_TIMES;
  const issues: Issue[] = [];
  const deadlineAt = instantOf('deadlineAt', deadlineText, issues);
  let runAt = instantOf('runAt', runAtText, issues);
  if (typeof delayMs === 'number') {
    if (runAtText !== undefined) issues.push(invalid('delayMs', 'Send runAt or delayMs, not both'));
    else runAt = now + delayMs;
  }
  if (runAt !== undefined && deadlineAt !== undefined && deadlineAt <= runAt)
    issues.push(invalid('deadlineAt', 'deadlineAt must be after the time the task may run'));
  return { issues, runAt, deadlineAt };
}

function instantOf(field: string, value: unknown, issues: Issue[]): number | undefined {
  if (value === undefined) return undefined;
  const ms = parseInstant(value);
  if (ms === undefined) issues.push(issue('run_at_invalid', { field, value: shown(value) }));
  return ms;
}

const NAMES: ReadonlySet<PropertyKey> = new Set(['type', 'tenant']);
/** `parseTimes` reports on these itself. */
const TIMES: ReadonlySet<PropertyKey> = new Set(['runAt', 'deadlineAt']);

function envelopeIssues(found: z.core.$ZodIssue, input: unknown): Issue[] {
  const [head] = found.path;
  if (found.code === 'unrecognized_keys') {
    return found.keys.map((key) => {
      const field = pathText([...found.path, key.slice(0, 100)]);
      return invalid(field, `Unknown field ${field}`);
    });
  }
  if (head !== undefined && TIMES.has(head)) return [];
  const field = pathText(found.path);
  const value = valueAt(input, found.path);
  if (head !== undefined && NAMES.has(head)) return [issue('name_invalid', { field, value: shown(value) })];
  return [invalid(field, `${field}: ${found.message}`)];
}

const invalid = (field: string, reason: string): Issue => issue('request_invalid', { field, reason });

const pathText = (path: readonly PropertyKey[]): string =>
  path.reduce<string>(
    (text, part) =>
      typeof part === 'number' ? `${text}[${part}]` : text === '' ? String(part) : `${text}.${String(part)}`,
    '',
  );

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const part of path) value = (value as Record<PropertyKey, unknown> | undefined)?.[part];
  return value;
}

/** A value as a message quotes it: short, and always storable. */
function shown(value: unknown): string {
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? '(an array)' : '(an object)';
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

function push(issues: Issue[], found: Issue | undefined): void {
  if (found !== undefined) issues.push(found);
}
