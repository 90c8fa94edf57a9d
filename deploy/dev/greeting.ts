import { setTimeout as delay } from 'node:timers/promises';
import type { DevKeys } from './keys.ts';

const HEALTHY_TIMEOUT_MS = 60_000;

/**
 * Waits until the program says that it is healthy.
 * @throws Error with its last answer when it does not get there, or when `signal` aborts
 */
export async function whenHealthy(url: string, signal: AbortSignal): Promise<void> {
  let answer = 'no answer';
  for (
    const deadline = Date.now() + HEALTHY_TIMEOUT_MS;
    Date.now() < deadline;
    await delay(100, undefined, { signal })
  ) {
    try {
      const response = await fetch(`${url}/healthz`, {
        signal: AbortSignal.any([signal, AbortSignal.timeout(2_000)]),
      });
      if (response.ok) return;
      answer = `${response.status} ${await response.text()}`;
    } catch {
      signal.throwIfAborted();
    }
  }
  throw new Error(`The program is not healthy after ${HEALTHY_TIMEOUT_MS / 1000} s: ${answer}`);
}

export interface Greeting {
  readonly url: string;
  readonly keys: DevKeys;
  readonly natsUrl: string;
  readonly databaseUrl: string;
  readonly dataDir: string;
  /** What the demo does, and a task to try. */
  readonly note: {
    readonly text: string;
    readonly sample: { readonly type: string; readonly payload: unknown };
  };
}

export const banner = ({ url, keys, natsUrl, databaseUrl, dataDir, note }: Greeting): string => `
  Taskledger is running.

    API       ${url}
    API docs  ${url}/docs
    NATS      ${natsUrl}
    Postgres  ${databaseUrl}
    Data      ${dataDir}
    Key       ${keys.demo}   (tenant demo)
    Operator  ${keys.operator}   (all tenants)

  ${note.text}
  Submit a task of your own:

    curl -s ${url}/v1/tasks -H 'authorization: Bearer ${keys.demo}' \\
      -H 'content-type: application/json' -d '${JSON.stringify({ type: note.sample.type, payload: note.sample.payload })}'

  Look around from another terminal:

    export TASKLEDGER_URL=${url} TASKLEDGER_KEY=${keys.demo}
    npx taskledger queue list

  Ctrl+C stops everything.
`;
