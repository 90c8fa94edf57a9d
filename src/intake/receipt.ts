import type { JsMsg } from '@nats-io/jetstream';
import { TaskledgerError } from '../domain/errors.ts';
import type { Actor } from '../domain/events.ts';
import { isName } from '../domain/names.ts';
import type { Names } from '../log/subjects.ts';
import { taskIdOfKey, taskIdOfSubmission } from './identity.ts';
import { becameOf, type Intake } from './intake.ts';
import { type Reason, reasonOf } from './issue.ts';
import type { Accepted, SubmitOutcome } from './outcome.ts';
import { givenKey } from './submission.ts';

/** Whom a submission's subject names. */
export interface Addressed {
  readonly tenant: string;
  readonly type: string;
}

/** What became of one message of SUBMISSIONS, and whom to tell. */
export interface Receipt {
  readonly outcome: string;
  readonly taskId: string;
  readonly answer: SubmissionAnswer;
  readonly replyTo: string | undefined;
  /** Refused, and the task id was taken, so that no REJECTED could be stored. */
  readonly unrecorded: boolean;
}

/** What is sent to `Taskledger-Reply`. */
export type SubmissionAnswer =
  | Accepted
  | {
      readonly ok: false;
      readonly id: string;
      readonly error: { readonly code: string; readonly field?: string; readonly message: string };
      readonly reasons: readonly Reason[];
      /** Sequence of the REJECTED event; null when there is none. */
      readonly seq: number | null;
    };

export const ACTOR: Actor = { kind: 'intake', id: 'gateway' };
/** Refusals of a well-formed submission: the task id belongs to another task, so there is nothing to reject. */
const CONFLICTS: ReadonlySet<string> = new Set(['idempotency_conflict']);

/** Tenant and type of `submit.<tenant>.<type>`, or undefined when they are no names. */
export function addressOf(names: Pick<Names, 'submit'>, subject: string): Addressed | undefined {
  const [type, tenant] = subject.split('.').reverse();
  return isName(tenant) && isName(type) && names.submit(tenant, type) === subject
    ? { tenant, type }
    : undefined;
}

/** The parts of a message that intake reads. */
export type Letter = Pick<JsMsg, 'data' | 'headers' | 'seq' | 'timestampNanos' | 'redelivered'>;

export interface ReceiptParts {
  readonly intake: Intake;
  readonly tenants: { get(name: string): unknown };
}

/**
 * Takes one message: the same checks and the same code as an HTTP request. Of its headers `Idempotency-Key`,
 * `traceparent` and `Taskledger-Reply` are read, no other. What is invalid becomes REJECTED with the reasons.
 * Throws retryable errors of the catalogue (`log_unavailable`): then the message must come again.
 */
export async function receive(
  message: Letter,
  address: Addressed,
  { intake, tenants }: ReceiptParts,
): Promise<Receipt> {
  const { tenant } = address;
  const letter = open(message, address);
  const { key, trace, body, input, fallbackId, taskId } = letter;
  if (message.redelivered) {
    const known = await intake.beginning(tenant, fallbackId);
    // It was refused under its own id, and the ack was lost, perhaps with the answer.
    if (known?.event.kind === 'REJECTED')
      return refusal(letter, {
        id: fallbackId,
        seq: known.seq,
        reasons: known.event.data.reasons as Reason[],
      });
  }
  const outcome = await attempt();
  if (outcome.ok)
    return {
      outcome: becameOf(outcome),
      taskId: outcome.id,
      answer: outcome,
      replyTo: letter.replyTo,
      unrecorded: false,
    };

  const { error, reasons } = outcome;
  if (error.retryable) throw error;
  const rejection = CONFLICTS.has(error.code)
    ? undefined
    : await intake.reject({ ...address, taskId, reasons, actor: ACTOR, trace });
  return refusal(letter, {
    id: taskId,
    seq: rejection?.seq ?? null,
    error,
    reasons,
    unrecorded: rejection?.existed ?? false,
  });

  async function attempt(): Promise<SubmitOutcome> {
    if (!body.ok) return failure(body.error);
    if (tenants.get(tenant) === undefined) return failure(new TaskledgerError('tenant_unknown', { tenant }));
    return intake.submit(tenant, input, {
      actor: ACTOR,
      trace,
      idempotencyKey: key,
      fallbackId,
      sentAt: Number(message.timestampNanos / 1_000_000n),
      // It has been stored in SUBMISSIONS: refusing it now would lose it.
      ignoreBacklog: true,
    });
  }
}

/** What a message says, and the ids that it may stand under: `taskId` its key's when it has one, `fallbackId` its own. */
export function open(message: Letter, { tenant, type }: Addressed) {
  const header = (name: string): string | undefined => message.headers?.get(name) || undefined;
  const key = header('Idempotency-Key');
  const body = parseBody(message.data, type);
  const input = body.ok ? body.value : undefined;
  const given = givenKey(input, key).key;
  const fallbackId = taskIdOfSubmission(tenant, message.seq, message.timestampNanos);
  return {
    key,
    trace: header('traceparent'),
    replyTo: inbox(header('Taskledger-Reply')),
    body,
    input,
    fallbackId,
    taskId: given === undefined ? fallbackId : taskIdOfKey(tenant, given),
  };
}

interface Refusal {
  readonly id: string;
  readonly seq: number | null;
  /** The first of the reasons when absent. */
  readonly error?: TaskledgerError;
  readonly reasons: readonly Reason[];
  readonly unrecorded?: boolean;
}

export function refusal(
  { replyTo }: Pick<Receipt, 'replyTo'>,
  { id, seq, error, reasons, unrecorded = false }: Refusal,
): Receipt {
  const { code, field, message } = error ?? reasons[0] ?? new TaskledgerError('internal');
  return {
    outcome: code,
    taskId: id,
    replyTo,
    unrecorded,
    answer: {
      ok: false,
      id,
      error: { code, ...(field === undefined ? {} : { field }), message },
      reasons,
      seq,
    },
  };
}

const failure = (error: TaskledgerError): SubmitOutcome => ({
  ok: false,
  error,
  reasons: [reasonOf({ code: error.code, field: error.field, error })],
});

const decoder = new TextDecoder('utf-8', { fatal: true });

type Body =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: TaskledgerError };

/** The subject names the type; a body may repeat it, but not contradict it. */
function parseBody(data: Uint8Array, type: string): Body {
  let value: unknown;
  try {
    value = JSON.parse(decoder.decode(data));
  } catch (cause) {
    return {
      ok: false,
      error: new TaskledgerError('payload_not_json', { reason: (cause as Error).message }),
    };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { ok: true, value };
  if (!Object.hasOwn(value, 'type')) return { ok: true, value: { ...value, type } };
  if ((value as { type: unknown }).type === type) return { ok: true, value };
  const reason = `The subject names type ${type}, the body another`;
  return { ok: false, error: new TaskledgerError('request_invalid', { field: 'type', reason }) };
}

/** Only an inbox of the submitter is answered: any other subject would let a submitter publish where it may not. */
const inbox = (subject: string | undefined): string | undefined =>
  subject !== undefined &&
  /^_INBOX\.[\w$.-]{1,200}$/.test(subject) &&
  !subject.includes('..') &&
  !subject.endsWith('.')
    ? subject
    : undefined;
