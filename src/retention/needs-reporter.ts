import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Names } from '../log/subjects.ts';
import type { Logger } from '../observe/log.ts';
import type { Clock } from '../platform/clock.ts';
import { sparingly } from '../platform/patience.ts';
import { type Service, serviceGroup } from '../platform/service.ts';
import { passes } from './passes.ts';
import { openRetentionRecords, type Unfinished } from './records.ts';

export interface NeedsReporterParts {
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly config: { readonly retentionCheckMs: number };
  readonly clock: Clock;
  readonly logger: Logger;
  /** The sequence that the slowest read model reflects; undefined while this process does not lead. */
  readonly position: () => number | undefined;
  /** Of the read models: what begins or was silent longest among the tasks that have not ended. */
  readonly unfinished: () => Promise<{ oldest: Unfinished | null; quietest: Unfinished | null }>;
}

/** Writes down what is still needed of the streams, so that it is known when no projector runs. */
export function createNeedsReporter(parts: NeedsReporterParts): Service & { runOnce(): Promise<boolean> } {
  const { nc, names, config, clock, logger } = parts;
  const { mirror } = openRetentionRecords(parts);
  const say = sparingly((error: unknown) =>
    logger.warn(
      { error: String(error) },
      'what the read models need of the streams cannot be written down: the last note of it counts; trying again',
    ),
  );

  async function report(): Promise<boolean> {
    // The position first: a task that begins after it is needed because of the position.
    const position = parts.position();
    if (position === undefined) return false;
    const { oldest, quietest } = await parts.unfinished();
    const jsm = await jetstreamManager(nc, { checkAPI: false });
    const { created } = await jsm.streams.info(names.streams.tasks);
    const logId = new Date(created).toISOString();
    await mirror.put('needs', { kind: 'needs', logId, position, oldest, quietest, at: clock.now() });
    return true;
  }

  let reporting: Promise<unknown> = Promise.resolve();
  /** False when there was nothing to say. One after the other: what was read first must not be written last. */
  function runOnce(): Promise<boolean> {
    const mine = reporting.then(report);
    reporting = mine.catch(() => undefined);
    return mine;
  }

  return {
    ...serviceGroup('needs reporter', [
      mirror,
      passes('needs reports', config.retentionCheckMs, async () => {
        try {
          await runOnce();
        } catch (error) {
          say(error);
        }
      }),
    ]),
    runOnce,
  };
}
