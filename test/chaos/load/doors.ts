import { jetstream } from '@nats-io/jetstream';
import { headers, type NatsConnection } from '@nats-io/transport-node';
import { createSubmitter, type Submitter } from '../../../src/index.ts';
import type { Names } from '../../../src/log/subjects.ts';
import type { Doors, Told } from './clients.ts';
import { type LoadTask, TENANTS } from './wishes.ts';

const ANSWER_WITHIN_MS = 6_000;
const DOUBTFUL_CODES = new Set(['log_unavailable', 'append_conflict', 'shutting_down']);

/** HTTP through the APIs, the trusted submitter straight to the log, and messages to the gateway. */
export async function openDoors(options: {
  /** Base URLs of the APIs, as the clients reach them. */
  readonly apis: readonly string[];
  /** API key by tenant. */
  readonly keys: ReadonlyMap<string, string>;
  /** Of the clients alone; stays the caller's. */
  readonly nc: NatsConnection;
  readonly names: Names;
}): Promise<Doors & { close(): Promise<void> }> {
  const { apis, keys, nc, names } = options;
  const submitters = new Map<string, Submitter>();
  for (const tenant of TENANTS)
    submitters.set(tenant, await createSubmitter({ nats: nc, tenant, name: 'chaos' }));
  const js = jetstream(nc, { timeout: ANSWER_WITHIN_MS });
  let turn = 0;

  const post = async (tenant: string, path: string, body: object, taskId?: string): Promise<Told> => {
    const api = apis[turn++ % apis.length] ?? '';
    const response = await fetch(new URL(path, api), {
      method: 'POST',
      headers: {
        authorization: `Bearer ${keys.get(tenant)}`,
        'content-type': 'application/json',
        ...(taskId === undefined ? {} : { 'idempotency-key': taskId }),
      },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    });
    const answer = (await response.json()) as { seq?: number; code?: string; error?: { code?: string } };
    const code = answer.code ?? answer.error?.code ?? '';
    if (response.ok)
      return {
        outcome: 'acknowledged',
        answer: String(response.status),
        ...(answer.seq === undefined ? {} : { seq: answer.seq }),
      };
    const open = response.status >= 500 || DOUBTFUL_CODES.has(code);
    return { outcome: open ? 'unknown' : 'refused', answer: `${response.status} ${code}` };
  };

  const submitToLog = async (task: LoadTask, taskId: string): Promise<Told> => {
    const submitter = submitters.get(task.tenant);
    if (submitter === undefined) throw new Error(`no submitter of ${task.tenant}`);
    const outcome = await submitter.submit({ type: task.type, ...inputOf(task) }, { key: taskId });
    if (outcome.ok)
      return {
        outcome: 'acknowledged',
        answer: outcome.replayed ? 'replayed' : 'accepted',
        seq: outcome.seq,
      };
    const { code } = outcome.error;
    return { outcome: DOUBTFUL_CODES.has(code) ? 'unknown' : 'refused', answer: code };
  };

  /** What SUBMISSIONS has acknowledged becomes a task: the gateway's part of the promise. */
  const send = async (task: LoadTask, taskId: string): Promise<Told> => {
    const key = headers();
    key.set('Idempotency-Key', taskId);
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
          return post(task.tenant, '/v1/tasks', { type: task.type, ...inputOf(task) }, taskId);
        case 'log':
          return submitToLog(task, taskId);
        case 'message':
          return send(task, taskId);
        default:
          return task.via satisfies never;
      }
    },
    cancel: (task, taskId) => post(task.tenant, `/v1/tasks/${taskId}/cancel`, { reason: 'chaos' }),
    async close() {
      for (const submitter of submitters.values()) await submitter.close();
    },
  };
}

const inputOf = ({ payload, priority, delayMs }: LoadTask) => ({
  payload,
  priority,
  ...(delayMs === undefined ? {} : { delayMs }),
});
