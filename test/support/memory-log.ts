import { TaskledgerError } from '../../src/domain/errors.ts';
import type { Recorded, TaskEvent } from '../../src/domain/events.ts';
import { fold } from '../../src/domain/task.ts';
import type { AppendOutcome, EventLog } from '../../src/log/event-log.ts';

export type MemoryLog = Omit<EventLog, 'bounds'> & {
  readonly events: readonly Recorded[];
  /** What happens to the next appends of this kind: `unheard` stores and does not answer, `down` does neither. */
  fault(kind: TaskEvent['kind'], faults: readonly ('unheard' | 'down')[]): void;
};

/** The log's contract in memory, for tests of what is built on it: the fence, and answers that never come. */
export function memoryLog(): MemoryLog {
  const events: Recorded[] = [];
  const faults = new Map<string, ('unheard' | 'down')[]>();
  const of = (tenant: string, taskId: string) =>
    events.filter(({ event }) => event.tenant === tenant && event.taskId === taskId);
  return {
    events,
    fault: (kind, list) => void faults.set(kind, [...list]),
    async append(event, expectedSeq): Promise<AppendOutcome> {
      const task = of(event.tenant, event.taskId);
      const own = task.find(({ event: { id } }) => id === event.id);
      if (own !== undefined) return { status: 'stored', seq: own.seq };
      const fault = faults.get(event.kind)?.shift();
      if (fault === 'down') throw new TaskledgerError('log_unavailable', { reason: 'down' });
      const lastSeq = task.at(-1)?.seq ?? 0;
      if (lastSeq !== expectedSeq) return { status: 'conflict', lastSeq };
      events.push({ seq: events.length + 1, storedAt: event.at, event });
      if (fault === 'unheard')
        throw new TaskledgerError('log_unavailable', { reason: 'unheard', doubtful: true });
      return { status: 'stored', seq: events.length };
    },
    readTask: async (tenant, taskId) => of(tenant, taskId),
    readLasts: async (tenant, taskId) => {
      const last = new Map(of(tenant, taskId).map((recorded) => [recorded.event.kind, recorded]));
      return [...last.values()].toSorted((a, b) => a.seq - b.seq);
    },
    readState: async (tenant, taskId) => fold(of(tenant, taskId)),
    readEvent: async (seq) => events[seq - 1],
  };
}
