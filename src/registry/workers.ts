import type { NatsConnection } from '@nats-io/transport-node';
import { z } from 'zod';
import { openStreamGet } from '../log/stream-get.ts';
import type { Names } from '../log/subjects.ts';
import type { Service } from '../platform/service.ts';

/** What a reader needs of a worker's entry; the worker writes more. */
const EntrySchema = z.object({
  id: z.string(),
  types: z.array(z.string()),
  versions: z.record(z.string(), z.tuple([z.int(), z.int()])).optional(),
  concurrency: z.int(),
  host: z.string(),
  pid: z.int(),
  version: z.string(),
  workerVersion: z.string().optional(),
  startedAt: z.number(),
  everyMs: z.number(),
  active: z.array(z.object({ task: z.string(), attempt: z.int() })),
  degraded: z.string().optional(),
});

/** `seenAt`: when the bucket stored the entry last, in ms since 1970 by the server's clock. */
export type RegisteredWorker = z.infer<typeof EntrySchema> & { readonly seenAt: number };

/** The workers that have written their entry within the bucket's memory, read when asked: one request. */
export interface Workers extends Service {
  /** In the order of their ids. Throws `log_unavailable`. */
  list(): Promise<RegisteredWorker[]>;
}

/** Periods of its own that a worker may be silent for before it is not counted on. */
const SILENT_PERIODS = 3;
const SLACK_MS = 2_000;

export const seemsAlive = ({ seenAt, everyMs }: RegisteredWorker, now: number): boolean =>
  now - seenAt <= SILENT_PERIODS * everyMs + SLACK_MS;

export function openWorkers({ nc, names }: { nc: NatsConnection; names: Pick<Names, 'buckets'> }): Workers {
  const bucket = names.buckets.workers;
  const get = openStreamGet(nc, `KV_${bucket}`);
  return {
    name: 'workers',
    start: async () => {},
    stop: async () => get.close(),
    async list() {
      const entries = await get.lastOfEach(`$KV.${bucket}.>`);
      return entries
        .flatMap(({ text, storedAt }): RegisteredWorker[] => {
          // An entry that was removed has no text.
          if (text === '') return [];
          const parsed = EntrySchema.safeParse(JSON.parse(text));
          return parsed.success ? [{ ...parsed.data, seenAt: storedAt }] : [];
        })
        .sort((a, b) => (a.id < b.id ? -1 : 1));
    },
  };
}
