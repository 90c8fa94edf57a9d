import type { Recorded } from '../../../src/domain/events.ts';
import type { JoinedSubmission, Violation } from './evidence.ts';
import { type Brought, groupKey, isBefore, joinedLine, markIn, submissionsBy } from './joined.ts';
import { type Lives, lifeKey, lineOf } from './lives.ts';

/** What is known of a debounce key, along the log. */
interface Line {
  /** The tasks that nobody has been handed, and that have not ended. */
  readonly waiting: Map<string, Recorded>;
  /** The payloads that came in, in the order of the log. */
  readonly brought: Brought[];
  /** The one of them whose submission was sent last. */
  latest?: Brought;
}

/**
 * `debounce`: one task of a key waits at most; each payload is that of a submission, none is overwritten by an older one, and the last
 * one is handed out; every acknowledged submission has a task, with its payload or a later one.
 */
export function checkDebounces(
  joined: readonly JoinedSubmission[],
  log: readonly Recorded[],
  lives: Lives,
): Violation[] {
  const { own, byMark } = submissionsBy('debounce', joined);
  const found: Violation[] = [];
  const lines = new Map<string, Line>();
  const tasks = new Map<string, Line>();
  for (const recorded of log) {
    const { event } = recorded;
    const task = lifeKey(event.tenant, event.taskId);
    if (event.kind === 'INGESTED' && event.data.debounce !== undefined) {
      const key = groupKey(event.tenant, event.type, event.data.debounce.key);
      const line = lines.get(key) ?? { waiting: new Map(), brought: [] };
      lines.set(key, line);
      tasks.set(task, line);
      found.push(...secondOf(line, recorded));
    }
    const line = tasks.get(task);
    if (line !== undefined) found.push(...follow(line, task, recorded, byMark));
  }
  for (const submission of own) {
    if (submission.outcome !== 'acknowledged') continue;
    const line = lines.get(groupKey(submission.tenant, submission.type, submission.key));
    found.push(...whatStandsFor(submission, line, lives));
  }
  return found;
}

const report = (message: string, witness: readonly string[]): Violation => ({
  rule: 'debounce',
  message,
  witness,
});

function secondOf({ waiting }: Line, recorded: Recorded): Violation[] {
  const [other] = waiting.values();
  if (other === undefined) return [];
  const { taskId } = recorded.event;
  return [report(`task ${taskId} begins while another one of its key waits`, [other, recorded].map(lineOf))];
}

function follow(
  line: Line,
  task: string,
  recorded: Recorded,
  byMark: ReadonlyMap<string, JoinedSubmission>,
): Violation[] {
  const { event } = recorded;
  switch (event.kind) {
    case 'INGESTED':
      line.waiting.set(task, recorded);
      return bring(line, recorded, byMark.get(markIn(event.data.payload) ?? ''));
    case 'RESCHEDULED':
      return event.data.payload === undefined
        ? []
        : [
            ...dueTooLate(line.waiting.get(task), recorded, event.data.dueAt),
            ...bring(line, recorded, byMark.get(markIn(event.data.payload) ?? '')),
          ];
    case 'CARRIED':
      return [];
    case 'QUEUED': {
      const waited = line.waiting.delete(task);
      return waited && event.data.payload !== undefined
        ? anotherPayload(line, recorded, markIn(event.data.payload))
        : [];
    }
    default:
      line.waiting.delete(task);
      return [];
  }
}

function bring(line: Line, recorded: Recorded, submission: JoinedSubmission | undefined): Violation[] {
  const { taskId } = recorded.event;
  if (submission === undefined || submission.outcome === 'refused')
    return [
      report(`task ${taskId} has the payload of no submission${submission ? ' but a refused one' : ''}`, [
        ...(submission ? [joinedLine(submission)] : []),
        lineOf(recorded),
      ]),
    ];
  const brought = { recorded, submission };
  line.brought.push(brought);
  const { latest } = line;
  if (latest === undefined || submission.at >= latest.submission.at) line.latest = brought;
  if (latest === undefined || !isBefore(submission, latest.submission)) return [];
  return [
    report(`task ${taskId} has an older payload than one before it`, [
      joinedLine(submission),
      joinedLine(latest.submission),
      lineOf(latest.recorded),
      lineOf(recorded),
    ]),
  ];
}

function dueTooLate(begun: Recorded | undefined, recorded: Recorded, dueAt: number | null): Violation[] {
  const until = begun?.event.kind === 'INGESTED' ? begun.event.data.debounce?.until : undefined;
  if (begun === undefined || until === undefined || dueAt === null || dueAt <= until) return [];
  return [
    report(
      `task ${recorded.event.taskId} is put off ${dueAt - until} ms beyond its longest wait`,
      [begun, recorded].map(lineOf),
    ),
  ];
}

function anotherPayload({ brought }: Line, recorded: Recorded, mark: string | undefined): Violation[] {
  const { taskId } = recorded.event;
  const last = brought.findLast((each) => each.recorded.event.taskId === taskId);
  if (last === undefined || last.submission.mark === mark) return [];
  return [
    report(`task ${taskId} is handed out with the payload of ${mark}, not its last`, [
      joinedLine(last.submission),
      lineOf(last.recorded),
      lineOf(recorded),
    ]),
  ];
}

function whatStandsFor(submission: JoinedSubmission, line: Line | undefined, lives: Lives): Violation[] {
  const { tenant, taskId, seq } = submission;
  const brought = line?.brought ?? [];
  const witness = [joinedLine(submission)];
  if (taskId === undefined)
    return brought.some((each) => !isBefore(each.submission, submission))
      ? []
      : [report('a stored message has no task with its payload or a later one', witness)];
  const own = brought.filter(({ recorded }) => recorded.event.taskId === taskId);
  const life = lives.get(lifeKey(tenant, taskId)) ?? [];
  if (own.length === 0)
    return [
      report(`task ${taskId} was named, and is not of the key`, [
        ...witness,
        ...life.slice(0, 1).map(lineOf),
      ]),
    ];
  const told = own.find(({ recorded }) => recorded.seq === seq);
  const lines = own.map(({ recorded }) => lineOf(recorded));
  if (told === undefined)
    return [
      report(`task ${taskId} was named, and the event ${seq} brought it no payload`, [...witness, ...lines]),
    ];
  return isBefore(told.submission, submission)
    ? [
        report(`the event ${seq} brought an older payload than the submission that it was named for`, [
          ...witness,
          joinedLine(told.submission),
          lineOf(told.recorded),
        ]),
      ]
    : [];
}
