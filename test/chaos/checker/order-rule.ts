import { type Recorded, STATUSES, type Status } from '../../../src/domain/events.ts';
import { TERMINAL } from '../../../src/domain/task.ts';
import type { Violation } from './evidence.ts';
import { lifeKey, lineOf } from './lives.ts';

/** What is known of a task that has an ordering key and has not ended. */
interface Turn {
  /** The event that gave it its place: of its submission, or of its last replay. */
  place: Recorded;
  last: Recorded;
  running: boolean;
}

/**
 * `order`: who is claimed is the first of those of its tenant, type and ordering key that have not ended, by the place
 * in the log of their submission or replay.
 */
export function checkOrder(log: readonly Recorded[]): Violation[] {
  const found: Violation[] = [];
  const keys = new Map<string, string>();
  const lines = new Map<string, Map<string, Turn>>();
  for (const recorded of log) {
    const { event } = recorded;
    const task = lifeKey(event.tenant, event.taskId);
    if (event.kind === 'INGESTED' && event.data.orderingKey !== undefined)
      keys.set(task, `${event.tenant}/${event.type}/${event.data.orderingKey}`);
    const key = keys.get(task);
    if (key === undefined) continue;
    const line = lines.get(key) ?? new Map<string, Turn>();
    lines.set(key, line);
    if (event.kind === 'CLAIMED') found.push(...whoIsPassedOver(key, line, task, recorded));
    follow(line, task, recorded);
  }
  return found;
}

function follow(line: Map<string, Turn>, task: string, recorded: Recorded): void {
  const { kind } = recorded.event;
  if (!isStatus(kind)) return;
  if (TERMINAL.has(kind)) {
    line.delete(task);
    return;
  }
  const turn = line.get(task);
  const running = kind === 'CLAIMED' || kind === 'PROCESSING';
  if (turn === undefined) line.set(task, { place: recorded, last: recorded, running });
  else Object.assign(turn, { last: recorded, running });
}

function whoIsPassedOver(
  key: string,
  line: ReadonlyMap<string, Turn>,
  task: string,
  claim: Recorded,
): Violation[] {
  const own = line.get(task)?.place ?? claim;
  const [other] = [...line].filter(
    ([id, { place, running }]) => id !== task && (running || place.seq < own.seq),
  );
  if (other === undefined) return [];
  const [, { place, last, running }] = other;
  return [
    {
      rule: 'order',
      message: `task ${claim.event.taskId} of the key ${key} is claimed while ${last.event.taskId} ${running ? 'runs' : 'was before it'}`,
      witness: [place, last, own, claim]
        .filter((each, index, all) => all.indexOf(each) === index)
        .toSorted((a, b) => a.seq - b.seq)
        .map(lineOf),
    },
  ];
}

const isStatus = (kind: string): kind is Status => (STATUSES as readonly string[]).includes(kind);
