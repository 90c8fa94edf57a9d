import { hostname } from 'node:os';
import type { Logger } from '../../observe/log.ts';
import { describeProcess } from '../../platform/embedded/process-info.ts';
import { within } from '../../platform/within.ts';
import type { Bench } from '../bench.ts';
import { Heir } from './heir.ts';
import { noSpool, type OutcomeKeeper, Spool } from './spool.ts';
import { tellLate } from './tell-late.ts';

/** A worker's spool and what it inherits from others, or nothing of both. */
export interface Spooling {
  readonly keeper: OutcomeKeeper;
  /** Why outcomes cannot be kept at present. */
  readonly problem: string | undefined;
  /** Begins to tell what dead workers have left. */
  inherit(bench: Bench): void;
  connectionIs(state: 'away' | 'back'): void;
  stop(): Promise<void>;
}

const noSpooling: Spooling = {
  keeper: noSpool,
  problem: undefined,
  inherit: () => {},
  connectionIs: () => {},
  stop: async () => {},
};

/** What is under way with the log may last until it gives up: no longer than this. */
const STOP_PATIENCE_MS = 2_000;

/** Resolves when it is known whether the directory can be written. */
export async function openSpooling({
  directory,
  worker,
  installation,
  onProblem,
  logger,
}: {
  directory: string | undefined;
  worker: string;
  installation: () => Promise<string>;
  onProblem: (problem: string | undefined) => void;
  logger: Logger;
}): Promise<Spooling> {
  if (directory === undefined) return noSpooling;
  const startedAt = (await describeProcess(process.pid))?.startedAt ?? '';
  const own = await installation();
  const owner = { worker, host: hostname(), pid: process.pid, startedAt, installation: own };
  const spool = new Spool({ directory, owner, onProblem, logger });
  await spool.start();
  let heir: Heir | undefined;
  return {
    keeper: spool,
    get problem() {
      return spool.problem;
    },
    inherit(bench) {
      heir = new Heir(worker, {
        directory,
        installation: own,
        tell: (outcome) => tellLate(bench, outcome),
        logger,
      });
      heir.start();
    },
    connectionIs: (state) => spool.connectionIs(state),
    async stop() {
      if (heir !== undefined) await within(STOP_PATIENCE_MS, heir.stop());
      await spool.stop();
    },
  };
}
