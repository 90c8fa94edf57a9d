import { Agent, request } from 'node:http';
import { createSubmitter } from '../../../src/index.ts';
import type { Target } from './messages.ts';
import type { BenchPayload } from './payload.ts';

/** When a task is due; at once when it says nothing. */
export interface Due {
  readonly runAt?: string;
  readonly delayMs?: number;
}

/** One way to submit. Both calls resolve when every task is accepted, and throw when one is not. */
export interface Submission {
  one(payload: BenchPayload, due?: Due): Promise<void>;
  many(payloads: readonly BenchPayload[], dues?: readonly Due[]): Promise<void>;
  close(): Promise<void>;
}

export const openSubmission = (target: Target): Promise<Submission> | Submission =>
  target.via === 'http' ? overHttp(target) : straightToLog(target);

/** Backpressure is a figure of its own: none of these is about it. */
const NO_LIMIT = 100_000_000;

async function straightToLog({ natsUrl, tenant, type }: Target): Promise<Submission> {
  const submitter = await createSubmitter({ nats: natsUrl, tenant, config: { maxBacklog: NO_LIMIT } });
  return {
    async one(payload, due) {
      const outcome = await submitter.submit({ type, payload, ...due });
      if (!outcome.ok) throw outcome.error;
    },
    async many(payloads, dues = []) {
      const outcomes = await submitter.submitBatch(
        payloads.map((payload, index) => ({ type, payload, ...dues[index] })),
      );
      for (const outcome of outcomes) if (!outcome.ok) throw outcome.error;
    },
    close: () => submitter.close(),
  };
}

const MAX_SOCKETS = 64;

function overHttp({ apiUrl, apiKey, type }: Target): Submission {
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS });
  const post = (path: string, body: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${apiKey}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      };
      const sent = request(new URL(path, apiUrl), { method: 'POST', agent, headers }, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => {
          const { statusCode = 0 } = response;
          if (statusCode >= 300) reject(new Error(`${path} answered ${statusCode}: ${text}`));
          else resolve(text);
        });
        response.on('error', reject);
      });
      sent.on('error', reject);
      sent.end(body);
    });
  return {
    async one(payload, due) {
      await post('/v1/tasks', JSON.stringify({ type, payload, ...due }));
    },
    async many(payloads, dues = []) {
      const tasks = payloads.map((payload, index) => ({ type, payload, ...dues[index] }));
      const answer = JSON.parse(await post('/v1/tasks/batch', JSON.stringify({ tasks }))) as BatchAnswer;
      const refused = answer.results.find((result) => !result.ok);
      if (refused !== undefined) throw new Error(`a task was refused: ${JSON.stringify(refused)}`);
    },
    async close() {
      agent.destroy();
    },
  };
}

interface BatchAnswer {
  readonly results: readonly { readonly ok: boolean }[];
}
