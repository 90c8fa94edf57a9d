import { TaskledgerError } from '../domain/errors.ts';
import type { Json } from '../domain/json.ts';
import { type FeedMessage, messagesOf } from './event-stream.ts';

/** The server sends a comment every 15 s: a stream that is silent for longer is dead. */
const SILENCE_MS = 40_000;

export interface ApiOptions {
  /** Base address, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly key: string;
  readonly fetch?: typeof fetch;
  /** Longest wait for one answer, in ms. */
  readonly timeoutMs?: number;
}

/** The server answered and said no: one entry of its error catalogue, as it sent it. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly status: number;
  readonly code: string;
  readonly fix: string;
  readonly retryable: boolean;
  readonly field: string | undefined;
  readonly reasons: readonly { readonly field?: string; readonly message: string }[];
  /** Address of the page about this code. */
  readonly doc: string | undefined;
  /** From `Retry-After`, in ms. */
  readonly retryAfterMs: number | undefined;

  constructor(status: number, body: RefusalBody['error'], doc?: string, retryAfterMs?: number) {
    super(body.message);
    this.status = status;
    this.code = body.code;
    this.fix = body.fix;
    this.retryable = body.retryable;
    this.field = body.field;
    this.reasons = body.reasons ?? [];
    this.doc = doc;
    this.retryAfterMs = retryAfterMs;
  }
}

export interface RefusalBody {
  readonly error: {
    readonly code: string;
    readonly message: string;
    readonly fix: string;
    readonly retryable: boolean;
    readonly field?: string;
    readonly reasons?: readonly { readonly field?: string; readonly message: string }[];
    readonly doc?: string;
  };
}

type Query = Readonly<Record<string, string | number | undefined>>;
interface Request {
  readonly query?: Query;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Requests to the API. Each throws a Refusal when the server says no, and `api_unreachable` or `answer_unexpected` when it
 * says nothing that can be understood.
 */
export function createRequests({ url, key, fetch: request = fetch, timeoutMs = 30_000 }: ApiOptions) {
  const base = url.replace(/\/+$/, '');

  async function call<T>(method: string, path: string, request: Request = {}): Promise<T> {
    const response = await answered(method, path, request, AbortSignal.timeout(timeoutMs));
    return response.status === 204 ? (undefined as T) : ((await readJson(response)) as T);
  }

  /** A live stream of one task's events after `after`. Ends, or throws `api_unreachable`, with the connection. */
  async function* follow(
    taskId: string,
    { tenant, after }: { tenant?: string | undefined; after: number },
  ): AsyncGenerator<FeedMessage> {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), timeoutMs);
    const heard = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
    };
    try {
      const headers = { 'last-event-id': String(after) };
      const query = { task: taskId, tenant };
      const response = await answered('GET', '/v1/events', { query, headers }, silence.signal);
      if (response.body === null) throw unexpected(response, 'no stream');
      yield* messagesOf(response.body, heard);
    } catch (cause) {
      if (cause instanceof Refusal || cause instanceof TaskledgerError) throw cause;
      throw new TaskledgerError('api_unreachable', { url: base, reason: reasonOf(cause) }, { cause });
    } finally {
      clearTimeout(timer);
      silence.abort();
    }
  }

  /** The answer of a server that did not say no. */
  async function answered(
    method: string,
    path: string,
    { query = {}, body, headers = {} }: Request,
    signal: AbortSignal,
  ): Promise<Response> {
    const response = await send(`${base}${path}${queryText(query)}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal,
    });
    if (response.ok) return response;
    const answer = await readJson(response);
    if (!isRefusal(answer)) throw unexpected(response, 'an error without a code');
    const { doc } = answer.error;
    throw new Refusal(
      response.status,
      answer.error,
      doc === undefined ? undefined : `${base}${doc}`,
      retryAfterMs(response),
    );
  }

  async function send(target: string, init: RequestInit): Promise<Response> {
    try {
      return await request(target, init);
    } catch (cause) {
      throw new TaskledgerError('api_unreachable', { url: base, reason: reasonOf(cause) }, { cause });
    }
  }

  async function readJson(response: Response): Promise<unknown> {
    try {
      return await response.json();
    } catch {
      throw unexpected(response, 'no JSON');
    }
  }

  const unexpected = (response: Response, reason: string): TaskledgerError =>
    new TaskledgerError('answer_unexpected', { url: base, status: response.status, reason });

  return { base, call, follow };
}

const isRefusal = (answer: unknown): answer is RefusalBody => {
  const { error } = (answer ?? {}) as { error?: { code?: Json; message?: Json } };
  return typeof error?.code === 'string' && typeof error.message === 'string';
};

function queryText(query: Query): string {
  const present = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as [string, string]],
  );
  return present.length === 0 ? '' : `?${new URLSearchParams(present).toString()}`;
}

const retryAfterMs = (response: Response): number | undefined => {
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds * 1_000 : undefined;
};

/** `fetch failed` says nothing; its cause does. */
const reasonOf = (thrown: unknown): string => {
  const { message, name, cause } = thrown as Error;
  if (name === 'TimeoutError') return 'no answer in time';
  const { code, message: inner } = (cause ?? {}) as { code?: string; message?: string };
  return code ?? inner ?? message;
};
