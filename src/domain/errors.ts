import type { ErrorEntry } from './catalogue/entry.ts';
import { logErrors } from './catalogue/log.ts';
import { readModelErrors } from './catalogue/read-models.ts';
import { requestErrors } from './catalogue/requests.ts';
import { serverErrors } from './catalogue/servers.ts';
import { taskErrors } from './catalogue/tasks.ts';

/** The error catalogue: every error a user can meet. A code is stable for ever, and belongs to one subject only. */
export const catalogue = {
  ...requestErrors,
  ...taskErrors,
  ...logErrors,
  ...readModelErrors,
  ...serverErrors,
} satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof catalogue;
export type ErrorDetails = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

const fill = (template: string, details: ErrorDetails): string =>
  template.replace(/\{(\w+)\}/g, (slot, name: string) => (name in details ? String(details[name]) : slot));

/** The one error class of the project. `field` names the input at fault, as a path such as `tasks[3].payload`. */
export class TaskledgerError extends Error {
  override readonly name = 'TaskledgerError';
  /** Stable for ever: what programs go by. */
  readonly code: ErrorCode;
  readonly details: ErrorDetails;
  readonly field: string | undefined;

  constructor(code: ErrorCode, details: ErrorDetails = {}, options: { cause?: unknown } = {}) {
    super(fill(catalogue[code].message, details), options);
    this.code = code;
    this.details = details;
    this.field = typeof details['field'] === 'string' ? details['field'] : undefined;
  }

  /** Of the HTTP answer. */
  get status(): number {
    return catalogue[this.code].status;
  }

  /** The same request may succeed later, as it stands. */
  get retryable(): boolean {
    return catalogue[this.code].retryable;
  }

  /** What to do next, in a sentence. */
  get fix(): string {
    return fill(catalogue[this.code].fix, this.details);
  }
}

/** A value that is either what was asked for or an error of the catalogue: expected failures are not thrown. */
export type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: TaskledgerError };

export const ok = <T>(value: T): Result<T> => ({ ok: true, value });
export const err = (
  code: ErrorCode,
  details: ErrorDetails = {},
): { readonly ok: false; readonly error: TaskledgerError } => ({
  ok: false,
  error: new TaskledgerError(code, details),
});
