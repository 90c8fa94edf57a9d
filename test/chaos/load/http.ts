/** What an API answered. A rejection is an answer that never came. */
export interface Answer {
  readonly ok: boolean;
  readonly status: number;
  readonly body: AnswerBody;
}
export interface AnswerBody {
  readonly id?: string;
  readonly seq?: number;
  readonly deduplicated?: string;
  readonly code?: string;
  readonly error?: { readonly code?: string };
  readonly [field: string]: unknown;
}

export interface Request {
  readonly key: string;
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly body?: object;
  readonly idempotencyKey?: string;
}
export type Call = (request: Request) => Promise<Answer>;

const ANSWER_WITHIN_MS = 6_000;
/** Of answers that leave open what became of the wish. */
export const DOUBTFUL_CODES: ReadonlySet<string> = new Set([
  'log_unavailable',
  'append_conflict',
  'shutting_down',
]);

/** Asks the APIs, a turn each. */
export function callOver(apis: readonly string[]): Call {
  let turn = 0;
  return async ({ key, method = 'POST', path, body, idempotencyKey }) => {
    const response = await fetch(new URL(path, apis[turn++ % apis.length]), {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    });
    const text = await response.text();
    return {
      ok: response.ok,
      status: response.status,
      body: (text === '' ? {} : JSON.parse(text)) as AnswerBody,
    };
  };
}

export const codeIn = ({ body }: Answer): string => body.code ?? body.error?.code ?? '';

/** What the client may conclude from an answer. */
export function outcomeOf(answer: Answer): 'acknowledged' | 'refused' | 'unknown' {
  if (answer.ok) return 'acknowledged';
  return answer.status >= 500 || DOUBTFUL_CODES.has(codeIn(answer)) ? 'unknown' : 'refused';
}
