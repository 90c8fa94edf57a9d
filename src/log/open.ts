import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Recorded } from '../domain/events.ts';
import { fold, isBeginning, type TaskState } from '../domain/task.ts';
import type { Logger } from '../observe/log.ts';
import { createAppend } from './append.ts';
import { askAgain } from './ask-again.ts';
import type { EventLog } from './event-log.ts';
import { Publisher, type PublisherConfig } from './publisher.ts';
import type { Names } from './subjects.ts';
import { createTaskReader } from './task-reader.ts';
import { orUnavailable } from './unavailable.ts';

export interface OpenedLog extends EventLog {
  readonly names: Names;
  /** For messages that are no events of a task: schedules, results of submissions. */
  readonly publisher: Publisher;
  /** Releases the log's subscriptions and fails what is in flight; the connection stays open. */
  close(): Promise<void>;
}

/** Opens the log on a connection. The streams must exist: see `ensureStreams`. */
export async function openLog({
  nc,
  names,
  config,
  logger,
}: {
  nc: NatsConnection;
  names: Names;
  config: PublisherConfig;
  logger: Logger;
}): Promise<OpenedLog> {
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const publisher = new Publisher(nc, config, logger);
  const reader = createTaskReader({ nc, names });
  const { readTask, readLasts, readEvent } = reader;
  return {
    names,
    publisher,
    append: createAppend({ names, publisher, readTask }),
    readTask,
    readLasts,
    readEvent,
    readState: async (tenant, taskId, atLeastSeq) => stateOf(await readTask(tenant, taskId, atLeastSeq)),
    async bounds() {
      const { state } = await orUnavailable(() => askAgain(() => jsm.streams.info(names.streams.tasks)));
      return { firstSeq: state.first_seq, lastSeq: state.last_seq };
    },
    async close() {
      publisher.close();
      reader.close();
    },
  };
}

/** Folds from the first event that a task can be known from: those before it may have lost their own beginning to age. */
export function stateOf(events: readonly Recorded[]): TaskState | undefined {
  const start = events.findIndex(({ event }) => isBeginning(event));
  return start < 0 ? undefined : fold(events.slice(start));
}
