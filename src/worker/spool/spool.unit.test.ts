import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { eventually } from '../../../test/support/eventually.ts';
import { complete, TASK_ID } from '../../../test/support/life.ts';
import { silentLogger } from '../../observe/log.ts';
import { Spool } from './spool.ts';
import { readSpool, type SpooledOutcome } from './spool-format.ts';

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

const owner = { worker: 'w1', host: 'h', pid: 7, startedAt: '123' };
const outcome = (): SpooledOutcome => ({
  tenant: 'acme',
  taskId: TASK_ID,
  command: { ...complete(), eventId: randomUUID() },
});

async function setup() {
  const root = await mkdtemp(join(tmpdir(), 'spool-'));
  const directory = join(root, 'spool');
  const problems: (string | undefined)[] = [];
  const spool = new Spool({
    directory,
    owner,
    onProblem: (problem) => problems.push(problem),
    logger: silentLogger,
  });
  cleanUps.push(
    () => rm(root, { recursive: true }),
    () => spool.stop(),
  );
  const path = join(directory, 'w1.spool');
  return { spool, directory, path, problems, read: async () => readSpool(await readFile(path, 'utf8')) };
}

describe('an outcome', () => {
  test('that is told soon leaves no file', async () => {
    const { spool, path, directory } = await setup();
    await spool.start();
    spool.slip(outcome()).settled();
    await spool.stop();
    expect(existsSync(path)).toBe(false);
    expect(await readdir(directory)).toEqual([]);
  });

  test('that is not told in time is on the disk, and goes when it is told', async () => {
    const { spool, read, path } = await setup();
    await spool.start();
    const told = outcome();
    const slip = spool.slip(told);
    await eventually(() => slip.kept);
    expect(await read()).toEqual({ owner, untold: [told], damaged: 0 });
    slip.settled();
    await eventually(() => !existsSync(path));
  });

  test('is put on the disk at once while the connection is away', async () => {
    const { spool, read } = await setup();
    const before = outcome();
    const after = outcome();
    const slips = [spool.slip(before)];
    spool.connectionIs('away');
    slips.push(spool.slip(after));
    await Promise.all(slips.map((slip) => slip.keep()));
    expect((await read()).untold).toEqual([before, after]);
    slips[0]?.settled();
    await eventually(async () => expect((await read()).untold).toEqual([after]));
  });

  test('is written again when somebody took the file away', async () => {
    const { spool, read, path } = await setup();
    const first = outcome();
    const second = outcome();
    await spool.slip(first).keep();
    await unlink(path);
    await spool.slip(second).keep();
    expect((await read()).untold).toEqual([first, second]);
  });
});

describe('a directory that cannot be written', () => {
  test('is told of, and outcomes are kept as soon as it can be', async () => {
    const { spool, directory, read, problems } = await setup();
    await writeFile(directory, 'in the way');
    await spool.start();
    expect(problems).toEqual([expect.stringMatching(/EEXIST|ENOTDIR/)]);
    const waiting = outcome();
    const slip = spool.slip(waiting);
    expect(await slip.keep()).toBe(false);
    await unlink(directory);
    await eventually(() => slip.kept);
    expect((await read()).untold).toEqual([waiting]);
    expect(problems.at(-1)).toBeUndefined();
  });
});
