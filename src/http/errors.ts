import type { z } from 'zod';
import { type ErrorCode, TaskledgerError } from '../domain/errors.ts';

/** The body of every answer that is no success. */
export interface ErrorBody {
  readonly error: {
    readonly code: ErrorCode;
    readonly message: string;
    readonly field?: string;
    /** What to do next. */
    readonly fix: string;
    readonly retryable: boolean;
    readonly details?: TaskledgerError['details'];
    /** Everything that is wrong with a submission, when it is more than one thing. */
    readonly reasons?: readonly {
      readonly code: string;
      readonly field?: string;
      readonly message: string;
    }[];
    readonly requestId: string;
    /** Path of the code's page. */
    readonly doc: string;
  };
}

/** `reasons` are shown when there is more than the error itself. */
export function errorBody(
  error: TaskledgerError,
  requestId: string,
  reasons: NonNullable<ErrorBody['error']['reasons']> = [],
): ErrorBody {
  const { code, message, field, fix, retryable, details } = error;
  return {
    error: {
      code,
      message,
      ...(field === undefined ? {} : { field }),
      fix,
      retryable,
      ...(Object.keys(details).length === 0 ? {} : { details }),
      ...(reasons.length > 1 ? { reasons } : {}),
      requestId,
      doc: `/errors/${code}`,
    },
  };
}

interface FrameworkError {
  readonly code?: string;
  readonly message?: string;
  readonly statusCode?: number;
}

/** What a thrown value means to a client. Anything that is not expected here becomes `internal`, with the cause kept. */
export function toTaskledgerError(
  thrown: unknown,
  request: { contentType: string; bodyLimit: number },
): TaskledgerError {
  if (thrown instanceof TaskledgerError) return thrown;
  const { code, message } = (thrown ?? {}) as FrameworkError;
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new TaskledgerError('payload_too_large', {
        field: 'body',
        bytes: `more than ${request.bodyLimit}`,
        limit: request.bodyLimit,
      });
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new TaskledgerError('unsupported_media_type', { value: request.contentType });
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new TaskledgerError('payload_not_json', { reason: 'its length differs from Content-Length' });
    case 'FST_ERR_BAD_URL':
      return new TaskledgerError('request_invalid', { reason: message ?? 'The URL is malformed' });
    default:
      return new TaskledgerError('internal', {}, { cause: thrown });
  }
}

/** A query or path parameter that does not validate. */
export function parameterError(error: z.ZodError, input: Readonly<Record<string, unknown>>): TaskledgerError {
  const [first] = error.issues;
  const unknown = first?.code === 'unrecognized_keys' ? first.keys[0] : undefined;
  const field = String(unknown ?? first?.path[0] ?? 'request').slice(0, 100);
  if (unknown !== undefined)
    return new TaskledgerError('request_invalid', { field, reason: `Unknown parameter ${field}` });
  if (field === 'tenant' || field === 'type')
    return new TaskledgerError('name_invalid', {
      field,
      value: JSON.stringify(input[field]).slice(0, 80),
    });
  return new TaskledgerError('request_invalid', {
    field,
    reason: `${field}: ${first?.message ?? 'invalid'}`,
  });
}
