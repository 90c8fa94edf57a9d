import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { encodeEvent } from '../../src/domain/codec.ts';
import type { Names } from '../../src/log/subjects.ts';
import { type LivesOptions, taskLives } from './task-lives.ts';

const FLUSH_EVERY = 1_000;

/** Appends without asking for answers: nobody else writes here. Returns the last sequence. */
export async function fillLog(nc: NatsConnection, names: Names, options: LivesOptions): Promise<number> {
  let count = 0;
  for (const event of taskLives(options)) {
    nc.publish(names.taskEvent(event.tenant, event.type, event.taskId, event.kind), encodeEvent(event));
    count += 1;
    if (count % FLUSH_EVERY === 0) await nc.flush();
  }
  await nc.flush();
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  for (;;) {
    const { state } = await jsm.streams.info(names.streams.tasks);
    if (state.last_seq >= count) return state.last_seq;
  }
}
