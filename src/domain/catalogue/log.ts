import { type ErrorEntry, entry } from './entry.ts';

/** The event log, its streams, and copies of them. */
export const logErrors = {
  log_unavailable: entry(
    503,
    true,
    'The event log did not confirm the write: {reason}',
    'Retry with the same idempotency key: a write that did happen is recognised.',
  ),
  log_refused: entry(
    500,
    false,
    'The event log refused a message on {subject}: {reason} ({code})',
    'Compare the settings of the stream with those that this version makes.',
  ),
  append_conflict: entry(
    409,
    true,
    'Task {taskId} was moved by somebody else',
    'Read it again and decide anew.',
  ),
  event_unreadable: entry(
    500,
    false,
    'Event at sequence {seq} cannot be read: {reason}',
    'It is set aside; see the projector log.',
  ),
  snapshot_unreadable: entry(
    500,
    false,
    'A snapshot of the dispatcher cannot be used: {reason}',
    'Nothing is lost: the dispatcher takes the one before it, or reads the log instead.',
  ),
  retention_needed: entry(
    500,
    false,
    'The shorter {limit} would remove events of {stream} that are still needed, sequence {seq} first: {why}',
    'Keep the limit until the task has ended and the read models have caught up; or accept the loss (TASKLEDGER_RETENTION_GUARD=warn).',
  ),
  backup_folder_not_empty: entry(
    400,
    false,
    'The folder {dir} is not empty',
    'Give a new or an empty folder for every backup.',
  ),
  backup_empty: entry(
    404,
    false,
    'There are no streams with the prefix "{prefix}" to back up',
    'Check NATS_URL and TASKLEDGER_PREFIX.',
  ),
  backup_unreadable: entry(
    400,
    false,
    'The backup in {dir} cannot be restored: {reason}',
    'Give the folder of a backup that was completed, as it was written.',
  ),
  backup_lacks: entry(
    404,
    false,
    'The backup in {dir} does not hold {lacking}',
    'Choose from what it holds: {held}.',
  ),
  restore_not_empty: entry(
    409,
    false,
    'What exists and holds something is not overwritten: {streams}',
    'Restore only what is gone (--only). To lose what they hold, delete them (nats stream rm), then restore.',
  ),
  restore_replaces: entry(
    409,
    false,
    'What exists is not replaced unasked, although it is empty: {streams}',
    'Give --replace-empty to have them deleted and made from the backup, or --only for others.',
  ),
  restore_inseparable: entry(
    409,
    false,
    '{stream} cannot be restored by itself: {reason}',
    'Restore TASKS and HISTORY together (--only TASKS,HISTORY), while nothing runs.',
  ),
  transfer_failed: entry(
    503,
    true,
    'Stream {stream} could not be transferred: {reason}',
    'Try again; if it persists, see the log of nats-server.',
  ),
} satisfies Record<string, ErrorEntry>;
