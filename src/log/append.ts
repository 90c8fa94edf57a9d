import { encodeEvent } from '../domain/codec.ts';
import { TaskledgerError } from '../domain/errors.ts';
import type { Recorded, TaskEvent } from '../domain/events.ts';
import type { AppendOutcome } from './event-log.ts';
import { lastSequenceIn } from './pub-ack.ts';
import { encodeMessage, headerText, type Publisher, type PublishOutcome } from './publisher.ts';
import type { Names } from './subjects.ts';

/** The task has moved: its last sequence is not the expected one. */
const WRONG_LAST_SEQUENCE = 10_071;
/** Doubtful event ids remembered for a caller who tries again after `log_unavailable`. */
const MAX_DOUBTS = 10_000;

export interface AppendParts {
  readonly names: Names;
  readonly publisher: Publisher;
  /** Must see everything up to `atLeastSeq`. */
  readonly readTask: (tenant: string, taskId: string, atLeastSeq: number) => Promise<readonly Recorded[]>;
}

/**
 * The one way to change a task, and the one place that writes the fence (rule 1): the server refuses the event unless
 * the last sequence of everything under `names.fence` is the expected one.
 *
 * There is no message id: the fence tells a repeat, and the server's memory of ids is spared. When an earlier try may
 * have been stored unheard, a refusal is compared with the task's history to recognise our own event.
 */
export function createAppend({ names, publisher, readTask }: AppendParts) {
  const doubts = new Set<string>();

  return async function append(
    event: TaskEvent,
    expectedSeq: number,
    may?: () => boolean,
  ): Promise<AppendOutcome> {
    const subject = names.taskEvent(event.tenant, event.type, event.taskId, event.kind, versionOf(event));
    const headers = fenceHeaders(names.fence(event.tenant, event.taskId), expectedSeq);
    let outcome: PublishOutcome;
    try {
      outcome = await publisher.send(encodeMessage(subject, headers, encodeEvent(event)), may);
    } catch (error) {
      if (error instanceof TaskledgerError && error.details['doubtful'] === true) remember(doubts, event.id);
      throw error;
    }
    if (outcome.status === 'stored') {
      if (doubts.size > 0) doubts.delete(event.id);
      return { status: 'stored', seq: outcome.seq };
    }
    if (outcome.code !== WRONG_LAST_SEQUENCE) {
      throw new TaskledgerError('log_refused', { subject, code: outcome.code, reason: outcome.description });
    }
    const lastSeq = lastSequenceIn(outcome.description);
    if (outcome.doubtful || doubts.has(event.id)) {
      const own = (await readTask(event.tenant, event.taskId, lastSeq)).find(
        ({ event: { id } }) => id === event.id,
      );
      doubts.delete(event.id);
      if (own !== undefined) return { status: 'stored', seq: own.seq };
    }
    return { status: 'conflict', lastSeq };
  };
}

const versionOf = (event: TaskEvent): number | undefined =>
  event.kind === 'QUEUED' ? event.data.facts.version : undefined;

const fenceHeaders = (fence: string, expectedSeq: number): string =>
  headerText({
    'Nats-Expected-Last-Subject-Sequence': String(expectedSeq),
    'Nats-Expected-Last-Subject-Sequence-Subject': fence,
  });

function remember(doubts: Set<string>, id: string): void {
  if (doubts.size >= MAX_DOUBTS) {
    for (const oldest of doubts) {
      doubts.delete(oldest);
      break;
    }
  }
  doubts.add(id);
}
