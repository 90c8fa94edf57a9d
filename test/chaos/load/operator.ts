import { setTimeout as delay } from 'node:timers/promises';
import { randomOf } from '../../support/random-lives.ts';
import type { Command, CommandOperation, PauseWindow } from '../checker/evidence.ts';
import { type Answer, type Call, outcomeOf, type Request } from './http.ts';
import { TENANTS, TYPES } from './wishes.ts';

/** Somebody who looks after the installation: pauses, cancels many, replays, discards, changes, rebuilds. */
export interface Operator {
  readonly commands: readonly CommandOperation[];
  readonly pauses: readonly PauseWindow[];
  /** Ids of the bulk operations that were accepted. */
  readonly bulks: readonly string[];
  /** Ends what it has paused. */
  stop(): Promise<void>;
}

const BETWEEN_MS = { least: 1_500, most: 5_000 };
const PAUSED_MS = 16_000;
/** A pause ends by itself, should its end not be heard. */
const PAUSED_AT_MOST_MS = 25_000;
const MOST_REPLAYED = 20;
const WAITING = ['INGESTED', 'FAILED', 'RETRY_CLAIMED'];

export function startOperator(options: {
  readonly seed: number;
  readonly call: Call;
  /** API key by tenant; of admins. */
  readonly keys: ReadonlyMap<string, string>;
  readonly operatorKey: string;
  /** Status by tenant and id, as heard so far. */
  readonly statuses: ReadonlyMap<string, string>;
  readonly record: (operation: CommandOperation) => void;
}): Operator {
  const { call, operatorKey } = options;
  const dice = randomOf(options.seed + 1);
  const commands: CommandOperation[] = [];
  const pauses: PauseWindow[] = [];
  const bulks: string[] = [];
  const stopped = new AbortController();
  const sleep = (ms: number): Promise<unknown> =>
    delay(ms, undefined, { signal: stopped.signal }).catch(() => undefined);
  const pick = <T>(items: readonly T[]): T => items[Math.floor(dice() * items.length)] as T;
  const ask = (request: Request): Promise<Answer | undefined> => call(request).catch(() => undefined);
  const tasksIn = (statuses: readonly string[]) =>
    [...options.statuses]
      .filter(([, status]) => statuses.includes(status))
      .map(([key]) => key.split('/') as [tenant: string, taskId: string]);

  /** One task that the clients have heard to be in such a status, which it may have left. */
  const command = async (
    op: Command,
    statuses: readonly string[],
    request: Omit<Request, 'key' | 'path'>,
    path: (id: string) => string,
  ) => {
    const candidates = tasksIn(statuses);
    if (candidates.length === 0) return;
    const [tenant, taskId] = pick(candidates);
    const at = Date.now();
    const answer = await ask({ ...request, key: options.keys.get(tenant) ?? '', path: path(taskId) });
    const outcome = answer === undefined ? 'unknown' : outcomeOf(answer);
    const operation = { op, at, tenant, taskId, outcome };
    commands.push(operation);
    options.record(operation);
  };
  const bulk = async (path: string, tenant: string, body: object): Promise<void> => {
    const answer = await ask({ key: options.keys.get(tenant) ?? '', path, body });
    if (answer?.status === 202 && answer.body.id !== undefined) bulks.push(answer.body.id);
  };

  const acts = {
    async pause() {
      const tenant = dice() < 0.6 ? pick(TENANTS) : undefined;
      const type = tenant === undefined || dice() < 0.5 ? pick(Object.keys(TYPES)) : undefined;
      const scope = { ...(tenant === undefined ? {} : { tenant }), ...(type === undefined ? {} : { type }) };
      const target = type === undefined ? `/v1/tenants/${tenant}` : `/v1/queues/${type}`;
      const query = type !== undefined && tenant !== undefined ? `?tenant=${tenant}` : '';
      const endsAt = Date.now() + PAUSED_AT_MOST_MS;
      const body = { reason: 'chaos', until: endsAt };
      const paused = await ask({ key: operatorKey, path: `${target}/pause${query}`, body });
      const from = Date.now();
      await sleep(PAUSED_MS);
      const until = Math.min(Date.now(), endsAt);
      if (paused?.ok) pauses.push({ ...scope, from, until });
      await ask({ key: operatorKey, path: `${target}/resume${query}`, body: {} });
    },
    async replay() {
      const [[tenant] = [pick(TENANTS)]] = [tasksIn(['DEAD_LETTER']).at(-1)];
      const ids = tasksIn(['DEAD_LETTER'])
        .filter(([of]) => of === tenant)
        .slice(-MOST_REPLAYED)
        .map(([, id]) => id);
      const targets =
        dice() < 0.5 && ids.length > 0 ? { ids } : { filter: { type: pick(Object.keys(TYPES)) } };
      const edited = dice() < 0.7 ? { payload: { badAttempts: 0, bad: 'fail', ms: 20 } } : {};
      const rate = dice() < 0.3 ? { ratePerSecond: 5 } : {};
      await bulk('/v1/replays', tenant, { ...targets, ...edited, ...rate, note: 'chaos' });
    },
    cancelMany: () =>
      bulk('/v1/cancellations', pick(TENANTS), {
        filter: { type: pick(Object.keys(TYPES)), status: WAITING },
        reason: 'chaos',
      }),
    discard: () =>
      command(
        'discard',
        ['DEAD_LETTER'],
        { body: { reason: 'chaos' } },
        (id) => `/v1/dead-letters/${id}/discard`,
      ),
    reschedule: () =>
      command(
        'reschedule',
        WAITING,
        {
          method: 'PATCH',
          body: { priority: 1 + Math.floor(dice() * 4), delayMs: Math.round(dice() * 4_000) },
        },
        (id) => `/v1/tasks/${id}`,
      ),
    async rebuild() {
      const name = pick(['tasks', 'queues', 'dead_letters', 'audit']);
      await ask({ key: operatorKey, path: `/v1/projections/${name}/rebuild`, body: {} });
    },
  };
  const WEIGHTED = [
    'pause',
    'pause',
    'replay',
    'replay',
    'cancelMany',
    'discard',
    'reschedule',
    'reschedule',
    'rebuild',
  ] as const;

  const pausing = new Set<Promise<void>>();
  const run = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      await sleep(BETWEEN_MS.least + dice() * (BETWEEN_MS.most - BETWEEN_MS.least));
      if (stopped.signal.aborted) return;
      const act = pick(WEIGHTED);
      if (act !== 'pause') await acts[act]();
      else if (pausing.size === 0) {
        // Meanwhile other things are done.
        const paused = acts.pause().finally(() => pausing.delete(paused));
        pausing.add(paused);
      }
    }
  };
  const running = run();
  return {
    commands,
    pauses,
    bulks,
    async stop() {
      stopped.abort();
      await running;
      await Promise.all(pausing);
    },
  };
}
