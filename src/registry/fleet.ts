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
});
type Member = z.infer<typeof MemberSchema>;

/** The workers that say that they live. */
export interface Fleet extends Service {
  /** Whether some live worker takes tasks of this type and version. */
  serves(type: string, version: number): boolean;
  /** Whether the worker has written its entry lately. */
  lives(workerId: string): boolean;
  /** Whether the registry has an entry of the worker, asked of the bucket itself. Throws when it does not answer. */
  isRegistered(workerId: string): Promise<boolean>;
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
  const isLate = ({ member, at }: { member: Member; at: number }, now: number): boolean =>
    now - at > SILENT_PERIODS * member.everyMs + SLACK_MS;

  return {
    name: 'fleet',
    start: () => mirror.start(),
    stop: () => mirror.stop(),
    serves(type, version) {
      const now = monotonicMs();
      for (const [workerId, entry] of heard) {
        if (now - entry.at > FORGET_AFTER_MS) heard.delete(workerId);
        else if (!isLate(entry, now) && takes(entry.member, type, version)) return true;
      }
      return false;
    },
    lives(workerId) {
      const entry = heard.get(workerId);
      return entry !== undefined && !isLate(entry, monotonicMs());
    },
    async isRegistered(workerId) {
      const kv = await new Kvm(nc).open(names.buckets.workers);
      return (await kv.get(workerId))?.operation === 'PUT';
    },
  };
}

function takes({ types, versions }: Member, type: string, version: number): boolean {
  if (!types.includes(type)) return false;
  const [least, greatest] = versions?.[type] ?? [FIRST_VERSION, FIRST_VERSION];
  return least <= version && version <= greatest;
}
