import type { Json } from '../domain/json.ts';

/** What the registry says of a worker: the value of its key in the KV bucket `workers`. */
export interface WorkerEntry {
  readonly id: string;
  readonly types: readonly string[];
  /** Least and greatest version by type, of the types that have others than version 1. */
  readonly versions?: Readonly<Record<string, readonly [number, number]>>;
  /** Attempts it runs at once. */
  readonly concurrency: number;
  readonly host: string;
  readonly pid: number;
  /** Of the SDK. */
  readonly version: string;
  /** Release of the code that it runs, when it says so. */
  readonly workerVersion?: string;
  /** Milliseconds since 1970, by the worker's clock: for people. */
  readonly startedAt: number;
  readonly seenAt: number;
  /** How often the entry is written: silence for a few times as long is suspicious. */
  readonly everyMs: number;
  /** How long its event loop has been stuck; 0 when it turns. */
  readonly blockedMs: number;
  /** The attempts whose leases it keeps alive. */
  readonly active: readonly ActiveAttempt[];
  /** Why it takes no work at present. */
  readonly degraded?: string;
}

export interface ActiveAttempt {
  /** `<tenant>/<task id>` */
  readonly task: string;
  readonly attempt: number;
  readonly progress?: Json;
}

/** What the worker knows of itself once and for all. */
export type WorkerIdentity = Omit<WorkerEntry, 'seenAt' | 'blockedMs' | 'active' | 'degraded'>;

export const taskKey = (tenant: string, taskId: string): string => `${tenant}/${taskId}`;
