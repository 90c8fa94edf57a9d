/**
 * Moves of a job:
 *
 *   waiting -> running               a projector has taken it
 *   running -> waiting               its projector stopped, or was not heard of for a while: another goes on from there
 *   running, waiting -> stopped      an operator asked
 *   stopped -> waiting | discarded   an operator asked
 *   running -> done | failed
 */
export type JobState = 'waiting' | 'running' | 'stopped' | 'done' | 'failed' | 'discarded';

/** `rebuild` replaces the live tables, `verify` compares them with a build, `build` makes tables as of a point beside them. */
export type JobKind = 'rebuild' | 'verify' | 'build';
export type JobPhase = 'reading' | 'indexing' | 'switching' | 'comparing';

/** Instants are ISO 8601 in UTC; null means "not (yet)". */
export interface Job {
  readonly id: string;
  readonly kind: JobKind;
  readonly projections: readonly string[];
  readonly schema: string;
  /** Last event to apply; null to follow the live tables. */
  readonly untilSeq: number | null;
  readonly state: JobState;
  readonly phase: JobPhase | null;
  /** Sequences: how far it has come, and where it goes. */
  readonly position: number;
  readonly target: number;
  readonly eventsPerSecond: number;
  readonly report: JobReport | null;
  readonly error: string | null;
  readonly requestedBy: string;
  readonly requestedAt: string;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
}

export interface JobReport {
  /** Sequence that the tables reflect. */
  readonly position: number;
  readonly seconds: number;
  /** Events set aside while building. */
  readonly poisoned: number;
  /** Of a verification. */
  readonly tables?: readonly TableReport[];
}

/** How the live table differs from what the log gives. */
export interface TableReport {
  readonly table: string;
  readonly rows: number;
  /** Rows that only one of the two has, and rows that both have with other content. */
  readonly missing: number;
  readonly surplus: number;
  readonly changed: number;
  /** The earliest event that a differing row reflects: the difference began at it or before. Null without one, or when rows do not say. */
  readonly fromSeq: number | null;
  readonly sample: readonly Difference[];
}

export interface Difference {
  readonly key: Readonly<Record<string, unknown>>;
  /** Columns whose values differ; empty for a row that one side lacks. */
  readonly columns: readonly string[];
  readonly live: Readonly<Record<string, unknown>> | null;
  readonly rebuilt: Readonly<Record<string, unknown>> | null;
}

export const differences = ({ missing, surplus, changed }: TableReport): number =>
  missing + surplus + changed;
