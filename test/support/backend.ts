import { startContainerBackend } from './container-backend.ts';
import { dockerAnswers } from './docker.ts';
import { startLocalBackend } from './local-backend.ts';

/** The two servers that a test run shares. */
export interface Backend {
  readonly natsUrl: string;
  /** A superuser's URL: test files make databases of their own with it. */
  readonly databaseUrl: string;
  stop(): Promise<void>;
}

type Log = (line: string) => void;

/**
 * TEST_BACKEND=local forces child processes, TEST_BACKEND=containers forces containers; without it containers are
 * used when a Docker engine answers and can provide the images. TEST_NATS_URL with TEST_DATABASE_URL name servers
 * that already run.
 */
export async function startBackend(runId: string, log: Log): Promise<Backend> {
  const { TEST_BACKEND, TEST_NATS_URL, TEST_DATABASE_URL } = process.env;
  if (TEST_NATS_URL && TEST_DATABASE_URL) {
    log(`backend: servers of your own, ${TEST_NATS_URL}`);
    return { natsUrl: TEST_NATS_URL, databaseUrl: TEST_DATABASE_URL, stop: async () => {} };
  }
  switch (TEST_BACKEND || 'auto') {
    case 'local':
      return startLocalBackend(runId, log);
    case 'containers':
      return startContainerBackend(log).catch((error: unknown) => {
        throw new Error(`TEST_BACKEND=containers asks for containers, but: ${reasonOf(error)}`, {
          cause: error,
        });
      });
    case 'auto':
      return startAnyBackend(runId, log);
    default:
      throw new Error(`TEST_BACKEND is "${TEST_BACKEND}"; it must be "local" or "containers"`);
  }
}

async function startAnyBackend(runId: string, log: Log): Promise<Backend> {
  if (!(await dockerAnswers())) return startLocalBackend(runId, log);
  try {
    return await startContainerBackend(log);
  } catch (error) {
    log(`a Docker engine answers, but gives no servers (${reasonOf(error)}); using local processes`);
    return startLocalBackend(runId, log);
  }
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message.trim() : String(error));
