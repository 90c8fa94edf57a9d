import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { complete, TASK_ID } from '../../../test/support/life.ts';
import { silentLogger } from '../../observe/log.ts';
import { Heir } from './heir.ts';
import { outcomeLine, ownerLine, type SpooledOutcome } from './spool-format.ts';

/** No process has it. */
const DEAD_PID = 2 ** 30;
const HERE = 'TASKS of 2026-01-01T00:00:00.000Z';

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

/** A directory with what a dead worker of an installation has left. */
async function setup(installation: string | undefined) {
  const directory = await mkdtemp(join(tmpdir(), 'heir-'));
  cleanUps.push(() => rm(directory, { recursive: true }));
  const path = join(directory, 'dead.spool');
  const left: SpooledOutcome = { tenant: 'acme', taskId: TASK_ID, command: complete('dead') };
  const owner = { worker: 'dead', host: hostname(), pid: DEAD_PID, startedAt: '1' };
  const line = ownerLine(installation === undefined ? owner : { ...owner, installation });
  await writeFile(path, line + outcomeLine(left));
  const told: SpooledOutcome[] = [];
  const warnings: string[] = [];
  const heir = new Heir('heir', {
    directory,
    installation: HERE,
    tell: async (outcome) => void told.push(outcome),
    logger: { ...silentLogger, warn: (_fields: object, message: string) => void warnings.push(message) },
  });
  return { heir, path, left, told, warnings };
}

test('what a dead worker of the same installation has left is told, and its file goes', async () => {
  const { heir, path, left, told } = await setup(HERE);
  await heir.runOnce();
  expect(told).toEqual([left]);
  expect(existsSync(path)).toBe(false);
});

test('so is what one of an earlier release has left, which does not say where it is from', async () => {
  const { heir, path, left, told } = await setup(undefined);
  await heir.runOnce();
  expect(told).toEqual([left]);
  expect(existsSync(path)).toBe(false);
});

test('the spool of another installation is left to its workers, and told of once', async () => {
  const { heir, path, told, warnings } = await setup('staging_TASKS of 2026-02-02T00:00:00.000Z');
  await heir.runOnce();
  await heir.runOnce();
  expect(told).toEqual([]);
  expect(existsSync(path)).toBe(true);
  expect(warnings).toEqual([expect.stringContaining('another installation')]);
});
