/**
 * Thrown by a handler when trying again cannot help: the task goes to its dead-letter queue at once, whatever its policy
 * says.
 *
 * @example
 * import { NotRetryable } from 'taskledger';
 *
 * export const refuse = (cause: Error): never => {
 *   throw new NotRetryable('the file is no picture', { code: 'not_a_picture', cause });
 * };
 */
export class NotRetryable extends Error {
  override readonly name: string = 'NotRetryable';
  /** Stable; what dead letters are grouped by. */
  readonly code: string | undefined;

  constructor(message: string, options: { readonly code?: string; readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.code = options.code;
  }
}
