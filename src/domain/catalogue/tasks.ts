import { type ErrorEntry, entry } from './entry.ts';

/** Submissions that are not taken, and what the rules of a task's life refuse. */
export const taskErrors = {
  idempotency_conflict: entry(
    409,
    false,
    'Task {taskId} exists with another payload or type',
    'Use a new idempotency key for a different task.',
  ),
  backlog_full: entry(
    429,
    true,
    'Type {type} has {waiting} tasks waiting; the limit is {limit}',
    'Retry after the time in Retry-After.',
  ),
  delayed_full: entry(
    429,
    true,
    'Type {type} has {waiting} tasks that wait for a time; the limit is {limit}',
    'Submit it without runAt or delayMs, or retry after the time in Retry-After.',
  ),
  tenant_backlog_full: entry(
    429,
    true,
    'Tenant {tenant} has {waiting} tasks waiting; its limit is {limit}',
    'Retry after the time in Retry-After; what was sent as a message, send again later: its key may be used again.',
  ),
  submission_rate_limited: entry(
    429,
    true,
    '{scope} may submit {limit} tasks a second, and {burst} at once after a calm time: that is used up',
    'Send again after {retryAfterMs} ms and spread the tasks, or have the rate raised: "taskledger tenant set", "taskledger type set".',
  ),
  debounce_superseded: entry(
    409,
    false,
    'A later submission of its debounce key has taken the place of this one in task {taskId}',
    'Nothing is left to do: the last submission of a key wins.',
  ),
  task_not_found: entry(
    404,
    false,
    'Task {taskId} is not known',
    'Check the id and the tenant; a task submitted a moment ago is visible with ?wait=<seq>.',
  ),
  task_exists: entry(
    409,
    false,
    'Task {taskId} already exists',
    'This is a repeat of an earlier submission.',
  ),
  task_missing: entry(404, false, 'Task {taskId} does not exist', 'Submit it first.'),
  task_terminal: entry(
    409,
    false,
    'Task {taskId} is {status}, which is final',
    'Only a dead-lettered or cancelled task can be replayed.',
  ),
  task_handed_out: entry(
    409,
    false,
    'Task {taskId} is {status}: it was already handed to the workers, so its place in line cannot change',
    'Let it run, or cancel it and submit it again.',
  ),
  task_discarded: entry(
    409,
    false,
    'Task {taskId} was discarded',
    'A discarded dead letter stays where it is: submit the work as a new task.',
  ),
  transition_illegal: entry(
    409,
    false,
    '{command} is not possible while task {taskId} is {status}',
    'Read the task again and decide anew.',
  ),
  lease_lost: entry(
    409,
    false,
    'Attempt {attempt} of task {taskId} no longer belongs to {worker}',
    'Drop the outcome: another attempt has been or will be made.',
  ),
  retries_left: entry(409, false, 'Task {taskId} still has retries left', 'Let it retry, or cancel it.'),
  retries_exhausted: entry(
    409,
    false,
    'Task {taskId} has no retries left',
    'It belongs in the dead-letter queue.',
  ),
  cancel_pending: entry(
    409,
    false,
    'Cancellation of task {taskId} was already requested',
    'Wait for the worker to observe it.',
  ),
  cancel_not_requested: entry(
    409,
    false,
    'Nobody asked to cancel task {taskId}',
    'Request the cancellation first.',
  ),
  payload_unknown: entry(
    409,
    false,
    'The payload of task {taskId} is not in the state at hand',
    'Read the event that holds it, and decide again with its payload in the state.',
  ),
  dead_letter_not_found: entry(
    404,
    false,
    'Task {taskId} is not known to have died',
    'Check the id and the tenant; GET /v1/dead-letters lists those that have.',
  ),
  schedule_invalid: entry(
    400,
    false,
    'The schedule cannot be: {reason}',
    'Correct the field; POST /v1/schedules/preview tries an expression out.',
  ),
  schedule_not_found: entry(
    404,
    false,
    'Tenant {tenant} has no schedule {name}',
    'List the schedules with GET /v1/schedules.',
  ),
  operation_not_found: entry(
    404,
    false,
    'Operation {operationId} is not known',
    'Check the id and the tenant; operations are kept for 90 days.',
  ),
  operation_ended: entry(
    409,
    false,
    'Operation {operationId} is {state}, which is final',
    'Start a new one for what is left.',
  ),
} satisfies Record<string, ErrorEntry>;
