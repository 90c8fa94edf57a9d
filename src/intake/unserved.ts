import type { NatsConnection, Subscription } from '@nats-io/transport-node';
import { z } from 'zod';
import type { Names } from '../log/subjects.ts';
import type { Clock } from '../platform/clock.ts';
import type { Service } from '../platform/service.ts';

const NoticeSchema = z.object({
  noWorkers: z.array(z.object({ type: z.string(), version: z.int(), waiting: z.int() })).default([]),
});
export type UnservedType = z.infer<typeof NoticeSchema>['noWorkers'][number];

/** Of which types and versions tasks wait although no worker is registered that could run them, as the dispatcher announces it. */
export interface Unserved extends Service {
  /** Versions of the type; none while the dispatcher is silent. */
  versionsOf(type: string): number[];
  all(): readonly UnservedType[];
}

const SILENCE_MS = 5_000;

export function createUnserved({
  nc,
  names,
  clock,
}: {
  readonly nc: Pick<NatsConnection, 'subscribe'>;
  readonly names: Pick<Names, 'backlog'>;
  readonly clock: Clock;
}): Unserved {
  let announced: readonly UnservedType[] = [];
  let announcedAt = Number.NEGATIVE_INFINITY;
  let subscription: Subscription | undefined;
  const all = (): readonly UnservedType[] => (clock.now() - announcedAt > SILENCE_MS ? [] : announced);
  return {
    name: 'unserved types',
    async start() {
      subscription = nc.subscribe(names.backlog, {
        callback: (error, message) => {
          if (error !== null) return;
          const notice = NoticeSchema.safeParse(parsed(message.string()));
          if (!notice.success) return;
          announced = notice.data.noWorkers;
          announcedAt = clock.now();
        },
      });
    },
    async stop() {
      if (subscription !== undefined && !subscription.isClosed()) subscription.unsubscribe();
      subscription = undefined;
    },
    versionsOf: (type) => all().flatMap((of) => (of.type === type ? [of.version] : [])),
    all,
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
