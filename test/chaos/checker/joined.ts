import type { Recorded } from '../../../src/domain/events.ts';
import type { JoinedSubmission } from './evidence.ts';

/** What a payload says of the submission that it came with. */
export function markIn(payload: unknown): string | undefined {
  const mark: unknown =
    typeof payload === 'object' && payload !== null && 'mark' in payload ? payload.mark : undefined;
  return typeof mark === 'string' ? mark : undefined;
}

/** Tasks and submissions of one key belong together. */
export const groupKey = (tenant: string, type: string, key: string): string => `${tenant}/${type}/${key}`;

export function joinedLine(submission: JoinedSubmission): string {
  const { at, by, key, tenant, type, mark, outcome, taskId, answer } = submission;
  const told = [taskId, answer].filter((part) => part !== undefined).join(', ');
  return `client ${new Date(at).toISOString()} ${by} ${tenant}/${type} ${key} mark ${mark}: ${outcome} (${told})`;
}

/** The submissions of one kind, by what their tasks are looked for by. */
export function submissionsBy(
  by: JoinedSubmission['by'],
  all: readonly JoinedSubmission[],
): { readonly own: readonly JoinedSubmission[]; readonly byMark: ReadonlyMap<string, JoinedSubmission> } {
  const own = all.filter((submission) => submission.by === by);
  return { own, byMark: new Map(own.map((submission) => [submission.mark, submission])) };
}

/** An event that brought a payload, and the submission that it came with. */
export interface Brought {
  readonly recorded: Recorded;
  readonly submission: JoinedSubmission;
}

/** Whose answer was there before the other was sent: of those at the same time either may be the later one. */
export const isBefore = (one: JoinedSubmission, other: JoinedSubmission): boolean =>
  one.outcome === 'acknowledged' && one.answeredAt + CLOCK_SLACK_MS < other.at;

/** A process may know the time of the servers so much late, when all its answers were. */
export const CLOCK_SLACK_MS = 1_000;
