import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import type pg from 'pg';
import type { Projection } from '../../projections/engine/projection.ts';
import { createProjector, type Projector } from '../../projections/engine/projector.ts';
import { projections } from '../../projections/projections.ts';
import { encodeEvent } from '../../src/domain/codec.ts';
import type { Recorded } from '../../src/domain/events.ts';
import { ensureStreams } from '../../src/log/streams.ts';
import { type Names, names as namesOf } from '../../src/log/subjects.ts';
import { type Logger, silentLogger } from '../../src/observe/log.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { type Config, loadConfig } from '../../src/platform/config.ts';
import { migrate } from '../../src/platform/migrate.ts';
import { createPool } from '../../src/platform/postgres.ts';
import { connectTestNats, createTestDatabase, type TestDatabase } from './servers.ts';

/** A line that a part has logged. */
export interface LogLine {
  readonly level: 'info' | 'warn' | 'error';
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A logger that keeps what it is told. */
export function recordingLogger(lines: LogLine[] = []): Logger & { readonly lines: LogLine[] } {
  const write = (level: LogLine['level']) => (fields: object, message: string) =>
    void lines.push({ level, message, fields: fields as LogLine['fields'] });
  const logger = {
    lines,
    debug() {},
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: () => logger,
  };
  return logger;
}

export const alarmsOf = ({ lines }: { lines: readonly LogLine[] }): unknown[] =>
  lines.flatMap(({ fields }) => (fields['alarm'] === undefined ? [] : [fields['alarm']]));

/** An empty, migrated database and a pool on it. */
export interface ModelDatabase extends TestDatabase {
  readonly pool: pg.Pool;
  /** One row a table, such as `{ tasks: <hash> }`: equal when all rows are. `schema`: public unless it is said. */
  hashes(schema?: string): Promise<Record<string, string>>;
  close(): Promise<void>;
}

export async function openModelDatabase(fileUrl: string): Promise<ModelDatabase> {
  const database = await createTestDatabase(fileUrl);
  await migrate(database.url, { logger: silentLogger });
  const pool = createPool({ ...loadConfig({}), databaseUrl: database.url }, 'test');
  return {
    ...database,
    pool,
    async hashes(schema = 'public') {
      const { rows } = await pool.query<Record<string, string>>(hashesSql(schema));
      return rows[0] ?? {};
    },
    async close() {
      await pool.end();
      await database.drop();
    },
  };
}

const hashesSql = (schema: string): string => `select
  (select md5(string_agg(t::text, '|' order by id, tenant)) from ${schema}.tasks t) as tasks,
  (select md5(string_agg(a::text, '|' order by seq)) from ${schema}.audit a) as audit,
  (select md5(string_agg(q::text, '|' order by tenant, type, priority, status))
   from ${schema}.queues q where count <> 0) as queues,
  (select md5(string_agg(d::text, '|' order by id, tenant)) from ${schema}.dead_letters d) as dead_letters,
  (select md5(string_agg(f::text, '|' order by id, tenant))
   from ${schema}.dead_letter_failures f) as dead_letter_failures,
  (select md5(string_agg(g::text, '|' order by tenant, type, fingerprint))
   from ${schema}.dead_letter_groups g) as dead_letter_groups`;

/** A log of its own on the shared NATS server, for projectors to read. */
export interface LogGround {
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly config: Config;
  /** Stores events as they are, without asking the fence; resolves with the log's last sequence. */
  append(events: readonly Recorded[]): Promise<number>;
  /** Stores any text as an event. */
  appendText(text: string): Promise<number>;
  /** Not started. What is left running is stopped with the ground. */
  projector(
    pool: pg.Pool,
    over?: { logger?: Logger; projections?: readonly Projection[]; config?: Partial<Config> },
  ): Projector;
  stop(): Promise<void>;
}

export async function openLogGround(prefix: string): Promise<LogGround> {
  const nc = await connectTestNats();
  const names = namesOf(prefix);
  const config: Config = { ...loadConfig({}), projectorBatchMs: 5 };
  await ensureStreams({ nc, names, config, logger: silentLogger });
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const started: Projector[] = [];
  const lastSeq = async () => (await jsm.streams.info(names.streams.tasks)).state.last_seq;
  const publish = async (messages: Iterable<{ subject: string; text: string }>): Promise<number> => {
    const before = await lastSeq();
    let count = 0;
    for (const { subject, text } of messages) {
      nc.publish(subject, text);
      count += 1;
    }
    await nc.flush();
    for (;;) {
      const after = await lastSeq();
      if (after >= before + count) return after;
    }
  };
  return {
    nc,
    names,
    config,
    append: (events) =>
      publish(
        events.map(({ event }) => ({
          subject: names.taskEvent(event.tenant, event.type, event.taskId, event.kind),
          text: encodeEvent(event),
        })),
      ),
    appendText: (text) => publish([{ subject: names.taskEvent('acme', 'odd', 'odd', 'INGESTED'), text }]),
    projector(pool, over = {}) {
      const projector = createProjector({
        nc,
        names,
        config: { ...config, ...over.config },
        pool,
        projections: over.projections ?? projections({ auditDays: 3_650 }),
        clock: systemClock,
        logger: over.logger ?? silentLogger,
      });
      started.push(projector);
      return projector;
    },
    async stop() {
      for (const projector of started) await projector.stop();
      for (const stream of Object.values(names.streams)) await jsm.streams.delete(stream);
      await nc.close();
    },
  };
}
