import type { EventOf, Recorded } from '../../../src/domain/events.ts';
import type { JoinedSubmission, Violation } from './evidence.ts';
import { CLOCK_SLACK_MS, groupKey, joinedLine, markIn, submissionsBy } from './joined.ts';
import { type Lives, lifeKey, lineOf } from './lives.ts';

/** A task of a throttle key, and the windows that it can be of. */
interface Made {
  readonly recorded: Recorded;
  readonly first: number;
  readonly last: number;
}

/** `throttle`: one task a key and window, with the payload of a submission, and one for every acknowledged submission. */
export function checkThrottles(joined: readonly JoinedSubmission[], lives: Lives): Violation[] {
  const { own, byMark } = submissionsBy('throttle', joined);
  const found: Violation[] = [];
  const groups = new Map<string, Made[]>();
  for (const life of lives.values()) {
    const [recorded] = life;
    if (recorded === undefined || !isThrottled(recorded)) continue;
    const { tenant, type, data } = recorded.event;
    const submission = byMark.get(markIn(data.payload) ?? '');
    if (submission === undefined || submission.outcome === 'refused') {
      found.push(
        report(
          `task ${recorded.event.taskId} was made by no submission${submission ? ' but a refused one' : ''}`,
          [...(submission ? [joinedLine(submission)] : []), lineOf(recorded)],
        ),
      );
      continue;
    }
    const key = groupKey(tenant, type, data.throttle.key);
    const made = groups.get(key) ?? [];
    groups.set(key, made);
    made.push({ recorded, ...windowsOf(recorded, submission) });
  }
  for (const made of groups.values()) found.push(...twiceInOne(made));
  for (const submission of own) {
    if (submission.outcome !== 'acknowledged') continue;
    const made = groups.get(groupKey(submission.tenant, submission.type, submission.key)) ?? [];
    found.push(...whatStandsFor(submission, made, lives));
  }
  return found;
}

const report = (message: string, witness: readonly string[]): Violation => ({
  rule: 'throttle',
  message,
  witness,
});

type Throttled = Recorded<EventOf<'INGESTED'>> & {
  readonly event: {
    readonly data: { readonly throttle: { readonly key: string; readonly windowMs: number } };
  };
};
const isThrottled = (recorded: Recorded): recorded is Throttled =>
  recorded.event.kind === 'INGESTED' && recorded.event.data.throttle !== undefined;

/**
 * The window of the task is that of the submission that made it. One that came by message was sent between the question and
 * the answer; the others are taken when the event says, by the clock that cuts the windows.
 */
function windowsOf({ event }: Throttled, { at, answeredAt, outcome, taskId }: JoinedSubmission) {
  const { windowMs } = event.data.throttle;
  const byMessage = taskId === undefined;
  const until = outcome === 'acknowledged' ? answeredAt : event.at;
  const [from, to] = byMessage ? [at, until] : [event.at, event.at];
  return {
    first: Math.floor((from - (byMessage ? SENT_SLACK_MS : 0)) / windowMs),
    last: Math.floor((to + SENT_SLACK_MS) / windowMs),
  };
}

/** Clocks of one machine, and the time between two looks at one of them. */
const SENT_SLACK_MS = 50;

function twiceInOne(made: readonly Made[]): Violation[] {
  const certain = made.filter(({ first, last }) => first === last);
  return certain.flatMap((one, index) => {
    const other = certain.slice(0, index).find(({ first }) => first === one.first);
    if (other === undefined) return [];
    const { taskId } = one.recorded.event;
    return [
      report(`task ${taskId} is the second of its key and window`, [
        lineOf(other.recorded),
        lineOf(one.recorded),
      ]),
    ];
  });
}

function whatStandsFor(submission: JoinedSubmission, made: readonly Made[], lives: Lives): Violation[] {
  const { tenant, taskId, seq, at, answeredAt, windowMs } = submission;
  const first = Math.floor((at - CLOCK_SLACK_MS) / windowMs);
  const last = Math.floor((answeredAt + SENT_SLACK_MS) / windowMs);
  const inWindow = made.filter((task) => task.first <= last && first <= task.last);
  const witness = [joinedLine(submission), ...inWindow.map(({ recorded }) => lineOf(recorded))];
  if (taskId === undefined)
    return inWindow.length > 0 ? [] : [report('a stored message has no task in its window', witness)];
  const [begun] = lives.get(lifeKey(tenant, taskId)) ?? [];
  if (begun === undefined) return [report(`task ${taskId} was named, and is not in the log`, witness)];
  if (!inWindow.some(({ recorded }) => recorded === begun))
    return [
      report(`task ${taskId} was named, and is not of the key and window`, [...witness, lineOf(begun)]),
    ];
  return seq === undefined || seq === begun.seq
    ? []
    : [report(`task ${taskId} was said to begin at ${seq}, and begins at ${begun.seq}`, witness)];
}
