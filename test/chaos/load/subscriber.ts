import type { NatsConnection } from '@nats-io/transport-node';
import { STATUSES } from '../../../src/domain/events.ts';
import type { LogReader } from '../../../src/log/event-log.ts';
import { createLogReader } from '../../../src/log/reader.ts';
import type { Names } from '../../../src/log/subjects.ts';
import { silentLogger as logger } from '../../../src/observe/log.ts';
import type { HeardCompletion } from '../checker/evidence.ts';
import { lifeKey } from '../checker/lives.ts';

/**
 * Somebody who wants to hear of every completion: reads the log from the position after the last one taken, and is
 * restarted now and then. Beside it, a plain subscription to the live feed, which may miss some.
 */
export interface Subscriber {
  readonly heard: readonly HeardCompletion[];
  /** Completions that the live feed brought. */
  readonly live: readonly HeardCompletion[];
  /** Status of every task heard of, by tenant and id. */
  readonly statuses: ReadonlyMap<string, string>;
  position(): number;
  stop(): Promise<void>;
}

const RESTART_EVERY_MS = 9_000;
const isStatus = (kind: string): boolean => (STATUSES as readonly string[]).includes(kind);

export async function startSubscriber(nc: NatsConnection, names: Names): Promise<Subscriber> {
  const heard: HeardCompletion[] = [];
  const statuses = new Map<string, string>();
  const live: HeardCompletion[] = [];
  const feed = nc.subscribe(names.feed('*', '*', '*', 'completed'), {
    callback: (error, { headers, subject }) => {
      const taskId = subject.split('.').at(-2) ?? '';
      if (error === null) live.push({ seq: Number(headers?.get('Nats-Sequence')), taskId });
    },
  });
  let position = 0;
  let stopping = false;
  let reader: LogReader | undefined;
  const open = async (): Promise<void> => {
    const opened = createLogReader(
      { nc, names, logger },
      {
        fromSeq: position + 1,
        maxBatch: 500,
        gatherMs: 0,
        onBatch({ events, lastSeq }) {
          for (const { seq, event } of events) {
            const { kind, tenant, taskId } = event;
            if (isStatus(kind)) statuses.set(lifeKey(tenant, taskId), kind);
            if (kind === 'COMPLETED') heard.push({ seq, taskId });
          }
          position = lastSeq;
        },
      },
    );
    reader = opened;
    await opened.start();
  };
  await open();
  let turn = Promise.resolve();
  const timer = setInterval(() => {
    turn = turn.then(async () => {
      await reader?.stop();
      if (!stopping) await open();
    });
  }, RESTART_EVERY_MS);
  return {
    heard,
    statuses,
    live,
    position: () => position,
    async stop() {
      stopping = true;
      clearInterval(timer);
      await turn;
      await reader?.stop();
      feed.unsubscribe();
    },
  };
}
