import { setTimeout as delay } from 'node:timers/promises';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import pg from 'pg';
import type { Names } from '../../src/log/subjects.ts';

/** How far the projectors are behind the log. */
export interface Positions {
  /** Last sequence of the log. */
  lastSeq(): Promise<number>;
  /** Events that the slowest projection has not yet committed. */
  lag(): Promise<number>;
  /** Resolves when nothing is left, with the milliseconds it took. */
  whenProjected(timeoutMs?: number): Promise<number>;
}

const POLL_MS = 20;

export async function watchPositions(source: {
  readonly natsUrl: string;
  readonly databaseUrl: string;
  readonly names: Names;
  /** Without a projector nothing is ever behind. */
  readonly projecting: boolean;
}): Promise<Positions & { close(): Promise<void> }> {
  const nc = await connect({ servers: source.natsUrl.split(','), name: 'bench-positions' });
  const manager = await jetstreamManager(nc);
  const pool = new pg.Pool({ connectionString: source.databaseUrl, max: 1 });
  pool.on('error', () => {});

  const lastSeq = async (): Promise<number> =>
    (await manager.streams.info(source.names.streams.tasks)).state.last_seq;
  const projectedSeq = async (): Promise<number> => {
    const { rows } = await pool.query<{ seq: string | null }>(
      'select min(seq) as seq from projection_checkpoint',
    );
    return Number(rows[0]?.seq ?? 0);
  };
  const lag = async (): Promise<number> =>
    source.projecting ? Math.max(0, (await lastSeq()) - (await projectedSeq())) : 0;
  return {
    lastSeq,
    lag,
    async whenProjected(timeoutMs = 120_000) {
      const startedAt = performance.now();
      for (;;) {
        const behind = await lag();
        const waitedMs = performance.now() - startedAt;
        if (behind === 0) return waitedMs;
        if (waitedMs > timeoutMs)
          throw new Error(`the projectors are still ${behind} events behind after ${timeoutMs} ms`);
        await delay(POLL_MS);
      }
    },
    async close() {
      await Promise.all([nc.close(), pool.end()]);
    },
  };
}
