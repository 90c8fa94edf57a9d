/** One error that a user can meet. `{slots}` in `message` and `fix` are filled from its details. */
export interface ErrorEntry {
  /** HTTP status an API answers with. */
  readonly status: number;
  /** Whether the same request may succeed later, unchanged. */
  readonly retryable: boolean;
  /** What is wrong, in one sentence. */
  readonly message: string;
  /** What to do next. */
  readonly fix: string;
}

export const entry = (status: number, retryable: boolean, message: string, fix: string): ErrorEntry => ({
  status,
  retryable,
  message,
  fix,
});
