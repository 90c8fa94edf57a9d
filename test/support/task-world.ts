import { randomUUID } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Command, CommandOf } from '../../src/domain/commands.ts';
import type { Actor, EventKind, Recorded } from '../../src/domain/events.ts';
import { evolve, fold, type TaskState } from '../../src/domain/task.ts';
import type { LogReader } from '../../src/log/event-log.ts';
import { execute } from '../../src/log/handle.ts';
import { type OpenedLog, openLog } from '../../src/log/open.ts';
import { createLogReader } from '../../src/log/reader.ts';
import { clockOfServers, type ServerClock } from '../../src/log/server-clock.ts';
import { ensureStreams } from '../../src/log/streams.ts';
import { type Names, names } from '../../src/log/subjects.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { type Config, loadConfig } from '../../src/platform/config.ts';
import { natsOptions } from '../../src/platform/nats.ts';
import { connectTestNats, testNatsUrl } from './servers.ts';

/** What an attempt of the stand-in worker ends in; `hold` leaves it running. */
export type AttemptOutcome = 'complete' | 'fail' | 'lose' | 'hold';

/**
 * An installation of its own on the shared NATS server, without the product's intake and worker: tasks are put into the
 * log directly, a stand-in worker moves them on, and a book keeps every event that the log has stored.
 */
export interface TaskWorld {
  readonly names: Names;
  readonly config: Config;
  readonly nc: NatsConnection;
  readonly log: OpenedLog;
  /** Every event, by task. */
  readonly book: ReadonlyMap<string, readonly Recorded[]>;
  /** A connection, a log and a clock of one's own, e.g. for a part that will be killed. The clock is yet to be started. */
  connect(): Promise<{ nc: NatsConnection; log: OpenedLog; clock: ServerClock }>;
  /** Appends INGESTED; the answer is the task id. */
  ingest(over?: Partial<CommandOf<'ingest'>>): Promise<string>;
  /** Claims and ends every QUEUED task; at most `concurrency` at a time. */
  work(outcomeOf?: (state: TaskState) => AttemptOutcome, concurrency?: number): Promise<Worker>;
  execute(taskId: string, build: (state: TaskState | undefined) => Command): Promise<void>;
  kindsOf(taskId: string): EventKind[];
  stateOf(taskId: string): TaskState | undefined;
  /** Tasks whose last event is of this kind. */
  count(kind: EventKind): number;
  stop(): Promise<void>;
}

export interface Worker {
  readonly actor: Actor;
  stop(): Promise<void>;
}

export const TENANT = 'acme';
export const TYPE = 'transcode';

/** `servers`: a NATS server or cluster other than the shared one. */
export async function openTaskWorld(
  prefix: string,
  settings: Partial<Config> = {},
  servers?: readonly string[],
): Promise<TaskWorld> {
  const config: Config = { ...loadConfig({}), ...settings };
  const worldNames = names(prefix);
  const closers: (() => Promise<void>)[] = [];
  let stopping = false;
  const connect = async () => {
    const nc = await connectTestNats({
      ...natsOptions({ ...config, natsUrl: (servers ?? [testNatsUrl()]).join(',') }, 'task-world'),
    });
    const log = await openLog({ nc, names: worldNames, config, logger: silentLogger });
    const clock = clockOfServers(nc, worldNames);
    closers.unshift(async () => {
      await clock.stop();
      await log.close();
      await nc.close();
    });
    return { nc, log, clock };
  };
  const { nc, log } = await connect();
  await ensureStreams({ nc, names: worldNames, config, logger: silentLogger });

  const book = new Map<string, Recorded[]>();
  const follow = async (onEvent: (recorded: Recorded) => void, fromSeq = 1): Promise<LogReader> => {
    const reader = createLogReader(
      { nc, names: worldNames, logger: silentLogger },
      { fromSeq, maxBatch: 1_000, gatherMs: 0, onBatch: ({ events }) => events.forEach(onEvent) },
    );
    await reader.start();
    closers.unshift(() => reader.stop());
    return reader;
  };
  await follow((recorded) => {
    const events = book.get(recorded.event.taskId);
    if (events === undefined) book.set(recorded.event.taskId, [recorded]);
    else events.push(recorded);
  });

  const run = async (taskId: string, build: (state: TaskState | undefined) => Command): Promise<void> => {
    const done = await execute(log, { tenant: TENANT, taskId }, build);
    if (!done.ok) throw done.error;
  };

  return {
    names: worldNames,
    config,
    nc,
    log,
    book,
    connect,
    execute: run,
    async ingest(over = {}) {
      const taskId = over.taskId ?? randomUUID();
      const command: Command = {
        kind: 'ingest',
        eventId: randomUUID(),
        at: Date.now(),
        actor: { kind: 'intake', id: 'test' },
        taskId,
        tenant: TENANT,
        type: TYPE,
        payload: { clip: taskId },
        priority: 2,
        ...over,
      };
      const done = await execute(log, { tenant: command.tenant, taskId, known: 'none' }, () => command);
      if (!done.ok) throw done.error;
      return taskId;
    },
    async work(outcomeOf = () => 'complete', concurrency = 64) {
      const actor: Actor = { kind: 'worker', id: `worker-${randomUUID()}` };
      const states = new Map<string, TaskState>();
      const queue: TaskState[] = [];
      let busy = 0;
      const next = (): void => {
        for (let item = queue[0]; item !== undefined && busy < concurrency; item = queue[0]) {
          queue.shift();
          busy += 1;
          void attempt(log, item, { actor, outcomeOf })
            .catch((error: unknown) => {
              // What is cut off by the end of the world is nobody's failure.
              if (!stopping) throw error;
            })
            .finally(() => {
              busy -= 1;
              next();
            });
        }
      };
      const reader = await follow((recorded) => {
        const state = evolve(states.get(recorded.event.taskId), recorded);
        states.set(state.id, state);
        if (state.status !== 'QUEUED') return;
        queue.push(state);
        next();
      });
      return {
        actor,
        async stop() {
          queue.length = 0;
          await reader.stop();
        },
      };
    },
    kindsOf: (taskId) => (book.get(taskId) ?? []).map(({ event }) => event.kind),
    stateOf: (taskId) => fold(book.get(taskId) ?? []),
    count: (kind) => [...book.values()].filter((events) => events.at(-1)?.event.kind === kind).length,
    async stop() {
      stopping = true;
      for (const close of closers.splice(0)) await close();
    },
  };
}

/** Claims a QUEUED task and ends the attempt. Somebody else may have it: then nothing is done. */
async function attempt(
  log: OpenedLog,
  known: TaskState,
  { actor, outcomeOf }: { actor: Actor; outcomeOf: (state: TaskState) => AttemptOutcome },
): Promise<void> {
  const at = { tenant: known.tenant, taskId: known.id };
  const meta = () => ({ eventId: randomUUID(), at: Date.now(), actor });
  const claimed = await execute(log, { ...at, known }, () => ({ ...meta(), kind: 'claim' }));
  if (!claimed.ok) return;
  const { attempt: number } = claimed.value.state;
  const outcome = outcomeOf(claimed.value.state);
  if (outcome === 'hold') return;
  if (outcome === 'lose') {
    await execute(log, { ...at, known: claimed.value.state }, () => ({
      ...meta(),
      kind: 'lose',
      attempt: number,
      reason: 'lease_expired',
      dice: 0.5,
    }));
    return;
  }
  const started = await execute(log, { ...at, known: claimed.value.state }, () => ({
    ...meta(),
    kind: 'start',
    attempt: number,
  }));
  if (!started.ok) return;
  await execute(log, { ...at, known: started.value.state }, () =>
    outcome === 'complete'
      ? { ...meta(), kind: 'complete', attempt: number, result: null }
      : {
          ...meta(),
          kind: 'fail',
          attempt: number,
          error: { name: 'Error', message: 'no luck' },
          dice: 0.5,
        },
  );
}
