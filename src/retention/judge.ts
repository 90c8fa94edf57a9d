import type { Danger, Needs } from './records.ts';

/** Limits of the streams, in ms and bytes; Infinity for none. */
export interface Limits {
  readonly hotWindowMs: number;
  readonly historyMs: number;
  readonly historyBytes: number;
}

/** An event that somebody needs. `at`: when it was stored (ms since 1970). */
export interface Needed {
  readonly seq: number;
  readonly at: number;
  readonly why: string;
}

export interface Kept {
  /** The first event that HISTORY must still have, and the bytes that HISTORY has from there on. */
  readonly history?: Needed & { readonly bytes: number };
  /** The last event of the unfinished task that was silent longest: TASKS must still have it. */
  readonly tasks?: Needed;
}

/**
 * Pure: which limits take away what is needed, once a part of them is used up. 1: what would go at once; less than 1:
 * what will go before long.
 */
export function judge(
  kept: Kept,
  limits: Limits,
  { now, part, streams }: { now: number; part: number; streams: { tasks: string; history: string } },
): Danger[] {
  const { history, tasks } = kept;
  const dangers: Danger[] = [];
  const tooOld = (needed: Needed | undefined, limitMs: number): needed is Needed =>
    needed !== undefined && now - needed.at > part * limitMs;
  if (tooOld(tasks, limits.hotWindowMs))
    dangers.push({ stream: streams.tasks, limit: 'max_age', seq: tasks.seq, why: tasks.why });
  if (tooOld(history, limits.historyMs))
    dangers.push({ stream: streams.history, limit: 'max_age', seq: history.seq, why: history.why });
  if (history !== undefined && history.bytes > part * limits.historyBytes)
    dangers.push({ stream: streams.history, limit: 'max_bytes', seq: history.seq, why: history.why });
  return dangers;
}

/** Which event HISTORY must still have, and why. Read models are rebuilt from it, a task with all that it has been through. */
export function firstNeeded({ position, oldest }: Needs): { seq: number; why: string } {
  if (oldest !== null && oldest.seq <= position)
    return {
      seq: oldest.seq,
      why: `task ${oldest.taskId} of ${oldest.tenant}, which began there, has not ended`,
    };
  return { seq: position + 1, why: `the read models reflect nothing after ${position}` };
}

export const lastWord = ({ quietest }: Needs): { seq: number; why: string } | undefined =>
  quietest === null
    ? undefined
    : {
        seq: quietest.lastSeq,
        why: `it is the last event of task ${quietest.taskId} of ${quietest.tenant}, which has not ended`,
      };
