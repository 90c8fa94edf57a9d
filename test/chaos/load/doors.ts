import { jetstream } from '@nats-io/jetstream';
import { headers, type NatsConnection } from '@nats-io/transport-node';
import { createSubmitter, type Submitter } from '../../../src/index.ts';
import type { Names } from '../../../src/log/subjects.ts';
import type { Logger } from '../../../src/observe/log.ts';
import type { Doors, Told } from './clients.ts';
import { type Answer, type AnswerBody, type Call, codeIn, DOUBTFUL_CODES, outcomeOf } from './http.ts';
import { type JoinKey, type LoadTask, TENANTS } from './wishes.ts';

const ANSWER_WITHIN_MS = 6_000;

/** HTTP through the APIs, the trusted submitter straight to the log, and messages to the gateway. */
export async function openDoors(options: {
  readonly call: Call;
  /** API key by tenant. */
  readonly keys: ReadonlyMap<string, string>;
  /** Of the clients alone; stays the caller's. */
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly logger: Logger;
}): Promise<Doors & { close(): Promise<void> }> {
  const { call, keys, nc, names, logger } = options;
  const submitters = new Map<string, Submitter>();
  for (const tenant of TENANTS)
    submitters.set(tenant, await createSubmitter({ nats: nc, tenant, name: 'chaos', logger }));
  const js = jetstream(nc, { timeout: ANSWER_WITHIN_MS });
  const keyOf = ({ tenant }: LoadTask): string => keys.get(tenant) ?? '';

  const submitToLog = async (task: LoadTask, taskId?: string): Promise<Told> => {
    const submitter = submitters.get(task.tenant);
    if (submitter === undefined) throw new Error(`no submitter of ${task.tenant}`);
    const outcome = await submitter.submit(
      { type: task.type, ...inputOf(task) },
      taskId === undefined ? {} : { key: taskId },
    );
    if (outcome.ok)
      return {
        outcome: 'acknowledged',
        answer: outcome.deduplicated ?? (outcome.replayed ? 'replayed' : 'accepted'),
        taskId: outcome.id,
        seq: outcome.seq,
      };
    const { code } = outcome.error;
    return { outcome: DOUBTFUL_CODES.has(code) ? 'unknown' : 'refused', answer: code };
  };

  /** What SUBMISSIONS has acknowledged becomes a task: the gateway's part of the promise. No tenant here has a `maxBacklog`, for which it may refuse. */
  const send = async (task: LoadTask, taskId?: string): Promise<Told> => {
    const key = headers();
    if (taskId !== undefined) key.set('Idempotency-Key', taskId);
    await js.publish(names.submit(task.tenant, task.type), JSON.stringify(inputOf(task)), {
      headers: key,
      timeout: ANSWER_WITHIN_MS,
    });
    return { outcome: 'acknowledged', answer: 'stored in SUBMISSIONS' };
  };

  return {
    async submit(task, taskId) {
      switch (task.via) {
        case 'http':
        case 'batch': {
          const body = { type: task.type, ...inputOf(task) };
          const key = taskId === undefined ? {} : { idempotencyKey: taskId };
          return toldOf(await call({ key: keyOf(task), path: '/v1/tasks', body, ...key }));
        }
        case 'log':
          return submitToLog(task, taskId);
        case 'message':
          return send(task, taskId);
        default:
          return task.via satisfies never;
      }
    },
    async submitBatch(batch) {
      const [first] = batch;
      if (first === undefined) return [];
      const tasks = batch.map(({ task, taskId }) => ({ id: taskId, type: task.type, ...inputOf(task) }));
      const answer = await call({ key: keyOf(first.task), path: '/v1/tasks/batch', body: { tasks } });
      if (!answer.ok) return batch.map(() => toldOf(answer));
      const results = answer.body['results'] as readonly (AnswerBody & { readonly ok: boolean })[];
      return results.map(({ ok, ...body }) => toldOf({ ok, status: ok ? 200 : 400, body }));
    },
    cancel: async (task, taskId) =>
      toldOf(await call({ key: keyOf(task), path: `/v1/tasks/${taskId}/cancel`, body: { reason: 'chaos' } })),
    async close() {
      for (const submitter of submitters.values()) await submitter.close();
    },
  };
}

function toldOf(answer: Answer): Told {
  const { id, seq, deduplicated } = answer.body;
  return {
    outcome: outcomeOf(answer),
    answer: `${answer.status} ${deduplicated ?? codeIn(answer)}`.trim(),
    ...(answer.ok && id !== undefined ? { taskId: id } : {}),
    ...(answer.ok && seq !== undefined ? { seq } : {}),
  };
}

const inputOf = ({ payload, priority, delayMs, deadlineInMs, join, ...task }: LoadTask) => ({
  payload,
  priority,
  ...(delayMs === undefined ? {} : { delayMs }),
  ...(deadlineInMs === undefined ? {} : { deadlineAt: Date.now() + (delayMs ?? 0) + deadlineInMs }),
  ...(task.orderingKey === undefined ? {} : { orderingKey: task.orderingKey }),
  ...(task.concurrencyKey === undefined ? {} : { concurrencyKey: task.concurrencyKey }),
  ...(task.version === undefined ? {} : { version: task.version }),
  ...joinOf(join),
});

function joinOf(join: JoinKey | undefined) {
  if (join === undefined) return {};
  const { by, ...key } = join;
  return { [by]: key };
}
