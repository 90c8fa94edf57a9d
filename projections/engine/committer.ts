import type pg from 'pg';
import type { LogBatch } from '../../src/log/event-log.ts';
import type { Logger } from '../../src/observe/log.ts';
import { loadCheckpoints, Superseded } from './checkpoint.ts';
import type { Connection } from './connection.ts';
import type { Progress } from './projection.ts';
import { applyBatch, applyOrSetAside, isAboutEvents, type Poison } from './transaction.ts';

/**
 * Commits batches, each exactly once: over lost connections (a retry first looks whether its predecessor did commit),
 * and past poison (a batch that cannot be digested is halved until the event at fault is alone).
 */
export class Committer {
  readonly #connection: Connection;
  readonly #logger: Logger;
  #poisoned = 0;

  constructor(parts: { connection: Connection; logger: Logger }) {
    this.#connection = parts.connection;
    this.#logger = parts.logger;
  }

  /** Events set aside since the start, counted once a projection. */
  poisoned(): number {
    return this.#poisoned;
  }

  /**
   * Applies the batch to those projections that are behind its end, and moves `progress`.
   * Throws Superseded when another projector was faster, `shutting_down` when told to stop in an outage.
   */
  async commit(progress: readonly Progress[], batch: LogBatch): Promise<void> {
    const behind = progress.filter(({ seq }) => seq < batch.lastSeq);
    if (behind.length === 0) return;
    const single = batch.events.length <= 1;
    try {
      const poison = await this.#connection.run(async (client, retried) => {
        if (retried && (await hasCommitted(client, behind, batch.lastSeq))) return [];
        return (single ? applyOrSetAside : applyBatch)(client, behind, batch);
      });
      for (const each of behind) each.seq = batch.lastSeq;
      this.#report(poison);
    } catch (error) {
      if (single || !isAboutEvents(error)) throw error;
      const [first, second] = halve(batch);
      await this.commit(progress, first);
      await this.commit(progress, second);
    }
  }

  #report(poison: readonly Poison[]): void {
    for (const { projection, seq, error } of poison) {
      this.#poisoned += 1;
      this.#logger.error({ alarm: 'poison', projection, seq, reason: error }, 'event set aside');
    }
  }
}

/** After a try whose outcome is unknown: true when it (or somebody else's very same) committed, false when nobody's did. */
async function hasCommitted(
  client: pg.ClientBase,
  progress: readonly Progress[],
  seq: number,
): Promise<boolean> {
  const names = progress.map(({ projection }) => projection.name);
  const stored = new Map((await loadCheckpoints(client, names)).map((each) => [each.name, each.seq]));
  if (progress.every(({ projection }) => stored.get(projection.name) === seq)) return true;
  if (progress.every((each) => stored.get(each.projection.name) === each.seq)) return false;
  throw new Superseded(`another projector moved ${names.join(' or ')}`);
}

function halve({ events, unreadable, lastSeq }: LogBatch): [LogBatch, LogBatch] {
  const middle = Math.floor(events.length / 2);
  const split = events[middle - 1]?.seq ?? 0;
  return [
    {
      events: events.slice(0, middle),
      unreadable: unreadable.filter(({ seq }) => seq <= split),
      lastSeq: split,
    },
    { events: events.slice(middle), unreadable: unreadable.filter(({ seq }) => seq > split), lastSeq },
  ];
}
