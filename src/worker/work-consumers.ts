import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { ensureWorkConsumer } from '../log/streams.ts';
import type { Names } from '../log/subjects.ts';
import type { Logger } from '../observe/log.ts';
import type { Config } from '../platform/config.ts';
import type { Patience } from '../platform/patience.ts';
import type { VersionRange } from './handler.ts';

/** One version of a type: it has a consumer of its own. */
export interface WorkLine {
  readonly type: string;
  readonly version: number;
}

export function linesOf(runnables: ReadonlyMap<string, { readonly versions: VersionRange }>): WorkLine[] {
  const lines: WorkLine[] = [];
  for (const [type, { versions }] of runnables)
    for (let version = versions[0]; version <= versions[1]; version += 1) lines.push({ type, version });
  return lines;
}

export interface ConsumersWanted {
  readonly nc: NatsConnection;
  readonly names: Names;
  /** Asked for by the user; undefined takes what is there. */
  readonly ackWaitMs: number | undefined;
  readonly config: Pick<Config, 'ackWaitMs' | 'dispatchGroup'>;
  readonly logger: Logger;
  readonly patience?: Patience;
}

/**
 * Sees to it that the types' shared consumers exist, and answers their ack-waits in ms, the shortest of a type's. What exists is changed only when
 * an ack-wait was asked for: all workers and the dispatcher share it. Throws `log_unavailable`.
 */
export async function ensureConsumers(
  { nc, names, ackWaitMs, config, logger, patience }: ConsumersWanted,
  lines: Iterable<WorkLine>,
): Promise<ReadonlyMap<string, number>> {
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const found = async ({ type, version }: WorkLine): Promise<number | undefined> => {
    try {
      const info = await jsm.consumers.info(names.streams.tasks, names.workConsumer(type, version));
      return Math.round((info.config.ack_wait ?? 0) / 1e6) || undefined;
    } catch {
      return undefined;
    }
  };
  const ackWaits = new Map<string, number>();
  for (const line of lines) {
    const { type, version } = line;
    let actual = await found(line);
    if (actual === undefined || (ackWaitMs !== undefined && actual !== ackWaitMs)) {
      if (actual !== undefined)
        logger.info({ type, version, from: actual, to: ackWaitMs }, 'ack-wait of the type changed');
      const fromSeq =
        actual === undefined ? await workFrom(nc, names.workFrom(config.dispatchGroup), line) : undefined;
      await ensureWorkConsumer({ nc, names, config, patience }, type, {
        version,
        ...(fromSeq === undefined ? {} : { fromSeq: () => fromSeq }),
      });
      actual = (await found(line)) ?? config.ackWaitMs;
    }
    ackWaits.set(type, Math.min(actual, ackWaits.get(type) ?? actual));
  }
  return ackWaits;
}

const ANSWER_WITHIN_MS = 1_000;

/**
 * Where the work of a consumer that is made anew begins, by the leading dispatcher. Undefined when none answers: then it
 * begins with the log, and all that was settled long ago is delivered once more and acked.
 */
async function workFrom(nc: NatsConnection, subject: string, line: WorkLine): Promise<number | undefined> {
  try {
    const answer = await nc.request(subject, JSON.stringify(line), { timeout: ANSWER_WITHIN_MS });
    const { fromSeq } = answer.json<{ fromSeq?: unknown }>();
    return typeof fromSeq === 'number' && fromSeq >= 1 ? fromSeq : undefined;
  } catch {
    return undefined;
  }
}
