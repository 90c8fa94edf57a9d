import { type ErrorCode, type ErrorDetails, TaskledgerError } from '../domain/errors.ts';

/** One thing that is wrong with a submission. `field` is a path such as `payload.a[3]`. */
export interface Issue {
  readonly code: ErrorCode;
  readonly field: string | undefined;
  readonly error: TaskledgerError;
}

export function issue(code: ErrorCode, details: ErrorDetails = {}): Issue {
  const error = new TaskledgerError(code, details);
  return { code, field: error.field, error };
}

/** The form in which issues leave the process: in HTTP answers, REJECTED events and NATS replies. */
export interface Reason {
  readonly code: string;
  readonly field?: string;
  readonly message: string;
}

export const reasonOf = ({ code, field, error }: Issue): Reason => ({
  code,
  ...(field === undefined ? {} : { field: storable(field) }),
  message: storable(error.message),
});

const MAX_TEXT = 500;

/** Messages quote what was wrong, which may be exactly what cannot be stored. */
const storable = (text: string): string =>
  (text.slice(0, MAX_TEXT) as RepairableText).toWellFormed().replaceAll('\0', '\\u0000');

/** Since Node 20; TypeScript knows it from ES2024 on. */
type RepairableText = string & { toWellFormed(): string };
