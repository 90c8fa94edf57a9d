/** Thrown by a handler when trying again cannot help: the task goes to its dead-letter queue at once. */
export class NotRetryable extends Error {
  override readonly name: string = 'NotRetryable';
  /** Grouped by in the dead-letter queue. */
  readonly code: string | undefined;

  constructor(message: string, options: { readonly code?: string; readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.code = options.code;
  }
}
