/** The public door of the package. What is not exported here or from `taskledger/testing` may change at any time. */
export { TaskledgerError } from './domain/errors.ts';
export type { Json } from './domain/json.ts';
export type { Priority } from './domain/names.ts';
export type { SubmitOutcome } from './intake/outcome.ts';
export type { TaskInput } from './intake/submission.ts';
export {
  createSubmitter,
  type SubmitOptions,
  type Submitter,
  type SubmitterOptions,
} from './intake/submitter.ts';
export { AttemptAborted } from './worker/attempt-aborted.ts';
export {
  defineTask,
  type Submission,
  type SubmissionOptions,
  type TaskDefinition,
} from './worker/define-task.ts';
export type {
  Handler,
  HandlerContext,
  TaskInfo,
  TypedHandler,
  VersionedHandler,
  VersionRange,
} from './worker/handler.ts';
export type { AttemptInfo, WorkerHooks, WorkerStats } from './worker/hooks.ts';
export { NotRetryable } from './worker/not-retryable.ts';
export type { WorkerOptions } from './worker/options.ts';
export { createWorker, type Worker } from './worker/worker.ts';
