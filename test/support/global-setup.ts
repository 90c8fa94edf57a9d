import { randomBytes } from 'node:crypto';
import type { TestProject } from 'vitest/node';
import { type Backend, startBackend } from './backend.ts';
import { buildForTests } from './built.ts';

declare module 'vitest' {
  interface ProvidedContext {
    readonly natsUrl: string;
    readonly databaseUrl: string;
    /** Different for every run, so that runs against a lasting server do not meet. */
    readonly runId: string;
  }
}

interface Shared {
  users: number;
  readonly runId: string;
  readonly backend: Promise<Backend>;
  readonly built: Promise<void>;
}

/** Every vitest project runs this file in a module graph of its own; the process is what they have in common. */
const KEY = Symbol.for('taskledger.test.servers');
const process_ = globalThis as typeof globalThis & { [KEY]?: Shared | undefined };

/** Starts one NATS and one Postgres for the whole run, and builds what its processes run; the last project to finish stops them. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  process_[KEY] ??= startShared();
  const shared = process_[KEY];
  shared.users += 1;
  const [backend] = await Promise.all([shared.backend, shared.built]);
  project.provide('natsUrl', backend.natsUrl);
  project.provide('databaseUrl', backend.databaseUrl);
  project.provide('runId', shared.runId);
  project.onTestsRerun(() => buildForTests());
  return async () => {
    shared.users -= 1;
    if (shared.users > 0) return;
    process_[KEY] = undefined;
    await backend.stop();
  };
}

function startShared(): Shared {
  const runId = randomBytes(3).toString('hex');
  const backend = startBackend(runId, (line) => console.log(`[servers] ${line}`));
  return { users: 0, runId, backend, built: buildForTests() };
}
