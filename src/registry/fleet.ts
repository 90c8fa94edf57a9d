import { Kvm } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import { z } from 'zod';
import { FIRST_VERSION } from '../domain/events.ts';
import type { Names } from '../log/subjects.ts';
import type { Logger } from '../observe/log.ts';
import type { Service } from '../platform/service.ts';
import { createMirror } from './mirror.ts';

/** What others need to know of a worker's entry in the registry; the worker writes more. */
const MemberSchema = z.object({
  id: z.string(),
  types: z.array(z.string()),
  /** Least and greatest version by type; a type that is absent stands for version 1. */
  versions: z.record(z.string(), z.tuple([z.int(), z.int()])).optional(),
  everyMs: z.number(),
  active: z.array(z.object({ task: z.string(), attempt: z.int() })).default([]),
});
type Member = z.infer<typeof MemberSchema>;

/** What a worker has said of itself, and how long ago. */
export interface Sight {
  /** How long ago its entry was heard of last. */
  readonly silentMs: number;
  /** Silent for longer, it has not written its entry when it should have, several times. */
  readonly patienceMs: number;
  /** Whether its entry lists the attempt as one whose lease it keeps. */
  reports(attempt: { readonly tenant: string; readonly taskId: string; readonly attempt: number }): boolean;
}

/** The workers that say that they live. */
export interface Fleet extends Service {
  /** Whether some live worker takes tasks of this type and version. */
  serves(type: string, version: number): boolean;
  /** What was heard of the worker; undefined when nothing was, or that it has left. */
  sightOf(workerId: string): Sight | undefined;
  /**
   * What the bucket itself says of the worker's entry: `gone`, `written` again since this process heard of it, or the
   * `same`. Throws when it does not answer.
   */
  askAfter(workerId: string): Promise<'gone' | 'written' | 'same'>;
}

/** Periods of its own after which a worker that writes nothing is not counted on, and what a burdened network may add. */
const SILENT_PERIODS = 3;
const SLACK_MS = 2_000;
/** The registry forgets its entry sooner. */
const FORGET_AFTER_MS = 120_000;

export interface FleetOptions {
  readonly nc: NatsConnection;
  readonly names: Pick<Names, 'buckets'>;
  readonly logger: Logger;
  /** Monotonic, in ms: entries are aged by the reader's own clock, never by a worker's. */
  readonly monotonicMs?: () => number;
}

export function openFleet({ nc, names, logger, monotonicMs = () => performance.now() }: FleetOptions): Fleet {
  const heard = new Map<string, { readonly member: Member; readonly at: number }>();
  // Who is gone leaves no more than a key behind in the mirror.
  const mirror = createMirror<{ readonly id: string }>({
    nc,
    logger,
    bucket: names.buckets.workers,
    parse(value) {
      const member = MemberSchema.parse(value);
      heard.set(member.id, { member, at: monotonicMs() });
      return { id: member.id };
    },
  });
  mirror.onChange((workerId, value) => {
    if (value === undefined) heard.delete(workerId);
  });
  const patienceWith = ({ everyMs }: Member): number => SILENT_PERIODS * everyMs + SLACK_MS;
  const isLate = ({ member, at }: { member: Member; at: number }, now: number): boolean =>
    now - at > patienceWith(member);

  return {
    name: 'fleet',
    start: (patience) => mirror.start(patience),
    stop: () => mirror.stop(),
    serves(type, version) {
      const now = monotonicMs();
      for (const [workerId, entry] of heard) {
        if (now - entry.at > FORGET_AFTER_MS) heard.delete(workerId);
        else if (!isLate(entry, now) && takes(entry.member, type, version)) return true;
      }
      return false;
    },
    sightOf(workerId) {
      const entry = heard.get(workerId);
      if (entry === undefined) return undefined;
      return {
        silentMs: monotonicMs() - entry.at,
        patienceMs: patienceWith(entry.member),
        reports: ({ tenant, taskId, attempt }) =>
          entry.member.active.some(
            (active) => active.attempt === attempt && active.task === `${tenant}/${taskId}`,
          ),
      };
    },
    async askAfter(workerId) {
      const kv = await new Kvm(nc).open(names.buckets.workers);
      const entry = await kv.get(workerId);
      if (entry?.operation !== 'PUT') return 'gone';
      return entry.revision > (mirror.revisionOf(workerId) ?? 0) ? 'written' : 'same';
    },
  };
}

function takes({ types, versions }: Member, type: string, version: number): boolean {
  if (!types.includes(type)) return false;
  const [least, greatest] = versions?.[type] ?? [FIRST_VERSION, FIRST_VERSION];
  return least <= version && version <= greatest;
}
