import type { NatsConnection } from '@nats-io/transport-node';
import { z } from 'zod';
import type { Names } from '../log/subjects.ts';
import type { Logger } from '../observe/log.ts';
import { createMirror, type Mirror } from '../registry/mirror.ts';

const seq = z.int().min(0);
const instant = z.int().min(0);
const LogId = z.string();

/** A task that has not ended. `seq`: its first event; `lastSeq`: its last one. */
const UnfinishedSchema = z.object({ tenant: z.string(), taskId: z.string(), seq, lastSeq: seq });
export type Unfinished = z.infer<typeof UnfinishedSchema>;

/** What is still needed of the streams, as the leading projector sees it: it survives the projector. */
export const NeedsSchema = z.object({
  kind: z.literal('needs'),
  logId: LogId,
  /** What the slowest read model reflects: every event after it is needed. */
  position: seq,
  /** Of the unfinished tasks up to the position: the one that began first, and the one that was silent longest. */
  oldest: UnfinishedSchema.nullable(),
  quietest: UnfinishedSchema.nullable(),
  at: instant,
});
export type Needs = z.infer<typeof NeedsSchema>;

/** Sequences of TASKS that HISTORY lacks or has more than once, or a message of HISTORY that is no event of TASKS. */
const FindingSchema = z.object({
  what: z.enum(['missing', 'doubled', 'foreign', 'deleted']),
  fromSeq: seq,
  toSeq: seq,
  /** Where in HISTORY. */
  historySeq: seq,
  foundAt: instant,
});
export type Finding = z.infer<typeof FindingSchema>;

/** The server may draw a stretch again when the leader of HISTORY changes; whoever reads it takes each event once. */
export const isHarmless = ({ what }: Pick<Finding, 'what'>): boolean => what === 'doubled';

/** A limit that will soon take away what is needed. */
const DangerSchema = z.object({
  stream: z.string(),
  limit: z.enum(['max_age', 'max_bytes']),
  /** The event of TASKS that is needed. */
  seq,
  why: z.string(),
});
export type Danger = z.infer<typeof DangerSchema>;

/** What the watch has seen so far. */
export const WatchSchema = z.object({
  kind: z.literal('watch'),
  logId: LogId,
  historyId: LogId,
  /** HISTORY is compared with TASKS up to this message of HISTORY, which is this event of TASKS. */
  historySeq: seq,
  sourceSeq: seq,
  /** Messages deleted from the middle of HISTORY that have been reported. */
  deleted: z.array(seq),
  /** Events of TASKS that HISTORY has not drawn yet, and since when it draws none. */
  lag: z.int(),
  stalledSince: instant.nullable(),
  /** The newest last; what an operator has accepted is counted and no longer shown. */
  findings: z.array(FindingSchema),
  accepted: z.int(),
  dangers: z.array(DangerSchema),
  at: instant,
});
export type Watch = z.infer<typeof WatchSchema>;

const RecordSchema = z.discriminatedUnion('kind', [NeedsSchema, WatchSchema]);

/** The two records, kept in a bucket: who needs what, and what the watch has found. */
export interface RetentionRecords {
  readonly mirror: Mirror<Needs | Watch>;
  readonly needs: () => Needs | undefined;
  readonly watch: () => Watch | undefined;
}

export function openRetentionRecords({
  nc,
  names,
  logger,
}: {
  nc: NatsConnection;
  names: Names;
  logger: Logger;
}): RetentionRecords {
  const mirror = createMirror<Needs | Watch>({
    nc,
    bucket: names.buckets.retention,
    logger,
    parse: (value) => RecordSchema.parse(value),
  });
  const of = <K extends 'needs' | 'watch'>(kind: K) => {
    const record = mirror.get(kind);
    return record?.kind === kind ? (record as Extract<Needs | Watch, { kind: K }>) : undefined;
  };
  return { mirror, needs: () => of('needs'), watch: () => of('watch') };
}
