import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DEMO_TENANT, ensureKeys } from '../../deploy/dev/keys.ts';
import type { EventKind, Recorded } from '../../src/domain/events.ts';
import { createWorker, type Worker } from '../../src/index.ts';
import { openLog } from '../../src/log/open.ts';
import { createLogReader } from '../../src/log/reader.ts';
import { names as namesOf } from '../../src/log/subjects.ts';
import { createLogger, silentLogger } from '../../src/observe/log.ts';
import { type Config, loadConfig } from '../../src/platform/config.ts';
import { connectNats } from '../../src/platform/nats.ts';
import { type NodeProcess, startNodeProcess } from './node-process.ts';

export const TYPE = 'errand';

/** What a client was told of a submission. `unknown`: no answer, or one that says that it may have been stored. */
export type Told =
  | { readonly kind: 'accepted'; readonly taskId: string }
  | { readonly kind: 'refused'; readonly status: number }
  | { readonly kind: 'unknown' };

/** The product as processes of their own, one worker in this process, and a client that remembers what it was told. */
export interface Installation {
  readonly config: Config;
  /** Of the API that is asked at present. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly roles: ReadonlyMap<string, NodeProcess>;
  readonly worker: Worker;
  /** What the client was told, by its own key of the submission. */
  readonly told: ReadonlyMap<string, Told>;
  /** Events of each task, as the log's reader gives them. */
  readonly book: ReadonlyMap<string, readonly Recorded[]>;
  /** Submissions begun. */
  sent(): number;
  /** Sequence of the last event read. */
  lastSeq(): number;
  /** Tasks that have this event. */
  count(kind: EventKind): number;
  /** Submits at this rate until the returned function is called, which resolves when every submission has ended. */
  load(perSecond: number): () => Promise<void>;
  /** `over`: other fields than the usual ones. */
  submit(over?: Readonly<Record<string, unknown>>): Promise<Told>;
  /** Starts another process of a role, in place of an earlier one; resolves when it has started. */
  restart(role: string): Promise<NodeProcess>;
  get(path: string): Promise<{ status: number; body: Record<string, unknown>; ms: number }>;
  stop(): Promise<void>;
}

export async function startInstallation(
  env: Readonly<Record<string, string>>,
  roles: readonly string[] = ['all'],
): Promise<Installation> {
  const dir = await mkdtemp(join(tmpdir(), 'installation-'));
  const own = { TASKLEDGER_HTTP_PORT: '0', TASKLEDGER_LOG_LEVEL: 'info', ...env };
  const config = loadConfig(own);
  const { demo: key } = await ensureKeys(config, dir);
  const processes = new Map(roles.map((role) => [role, startNodeProcess('src/main.ts', [role], own)]));
  const api = processes.get('api') ?? processes.get('all');
  let url = String((await api?.logged('HTTP API listens', 60_000))?.['url']);
  const worker = createWorker({
    nats: config.natsUrl,
    prefix: config.prefix,
    concurrency: 20,
    ackWaitMs: config.ackWaitMs,
    types: { [TYPE]: () => 'done' },
    logger: createLogger({ logLevel: 'silent' }),
  });
  await worker.start();

  const nc = await connectNats(config, 'book keeper');
  const names = namesOf(config.prefix);
  const log = await openLog({ nc, names, config, logger: silentLogger });
  const book = new Map<string, Recorded[]>();
  const counts = new Map<EventKind, number>();
  const reader = createLogReader(
    { nc, names, logger: silentLogger },
    {
      fromSeq: 1,
      maxBatch: 1_000,
      gatherMs: 0,
      onBatch({ events }) {
        for (const recorded of events) {
          const { taskId, kind } = recorded.event;
          const known = book.get(taskId);
          if (known === undefined) book.set(taskId, [recorded]);
          else known.push(recorded);
          counts.set(kind, (counts.get(kind) ?? 0) + 1);
        }
      },
    },
  );
  await reader.start();

  let sent = 0;
  const told = new Map<string, Told>();
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const submit = async (over = {}): Promise<Told> => {
    const id = randomUUID();
    sent += 1;
    const answer = await fetch(`${url}/v1/tasks`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ type: TYPE, payload: { id }, id, tenant: DEMO_TENANT, ...over }),
      signal: AbortSignal.timeout(30_000),
    }).then(toldBy, (): Told => ({ kind: 'unknown' }));
    told.set(id, answer);
    return answer;
  };
  return {
    config,
    get url() {
      return url;
    },
    headers,
    roles: processes,
    async restart(role) {
      const started = startNodeProcess('src/main.ts', [role], own);
      processes.set(role, started);
      await started.logged('started', 60_000);
      if (role === 'api' || role === 'all') url = String((await started.logged('HTTP API listens'))['url']);
      return started;
    },
    worker,
    told,
    book,
    sent: () => sent,
    lastSeq: () => reader.position(),
    count: (kind) => counts.get(kind) ?? 0,
    submit,
    load(perSecond) {
      const pending = new Set<Promise<Told>>();
      const timer = setInterval(() => {
        for (let n = 0; n < perSecond / 20; n++) {
          const one = submit();
          pending.add(one);
          void one.finally(() => pending.delete(one));
        }
      }, 50);
      return async () => {
        clearInterval(timer);
        await Promise.all(pending);
      };
    },
    async get(path) {
      const startedAt = performance.now();
      const response = await fetch(`${url}${path}`, { headers, signal: AbortSignal.timeout(30_000) });
      const body = (await response.json()) as Record<string, unknown>;
      return { status: response.status, body, ms: performance.now() - startedAt };
    },
    async stop() {
      await worker.stop();
      await reader.stop();
      await log.close();
      await nc.close();
      for (const each of [...processes.values()].reverse()) await each.stop('SIGKILL');
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function toldBy(response: Response): Promise<Told> {
  const body = (await response.json()) as { id?: string };
  if (response.ok && body.id !== undefined) return { kind: 'accepted', taskId: body.id };
  // 503: the write may still happen, and the same key tells.
  return response.status === 503 ? { kind: 'unknown' } : { kind: 'refused', status: response.status };
}

/** What is wrong with the history that the client and the log tell together; empty when nothing is. */
export function contradictions({ told, book }: Pick<Installation, 'told' | 'book'>): string[] {
  const found: string[] = [];
  for (const [id, answer] of told)
    if (answer.kind === 'accepted' && !book.has(answer.taskId))
      found.push(`${id} was accepted and is not in the log`);
  for (const [taskId, events] of book) {
    const kinds = events.map(({ event }) => event.kind);
    const times = (kind: EventKind) => kinds.filter((each) => each === kind).length;
    if (kinds[0] !== 'INGESTED' || times('INGESTED') !== 1)
      found.push(`${taskId} does not begin once: ${kinds.join()}`);
    if (times('COMPLETED') !== 1) found.push(`${taskId} is not completed once: ${kinds.join()}`);
  }
  return found;
}
