import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, inflateSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { HandlerContext, TypedHandler } from '../../index.ts';
import { NotRetryable } from '../../index.ts';
import { filesDemo } from './files.ts';

let mediaDir: string;
beforeEach(async () => {
  mediaDir = await mkdtemp(join(tmpdir(), 'taskledger-files-'));
});
afterEach(() => rm(mediaDir, { recursive: true, force: true }));

async function makeItem(n: number, id = `item-${n}`) {
  const dir = join(mediaDir, id);
  await mkdir(dir);
  return filesDemo.makeItem({ id, n, dir });
}

/** Runs a task as a worker would: payload checked, then the handler, then the result checked. */
async function run({ type, payload }: { type: string; payload: unknown }): Promise<Record<string, unknown>> {
  const handler = filesDemo.handlers(mediaDir)[type] as TypedHandler;
  const parsed = handler.parsePayload(payload as never);
  if (!parsed.ok) throw new Error(parsed.reason);
  const context = {
    payload: parsed.value,
    task: { id: '01890a5d-ac96-774b-bcce-b302099a8057', attempt: 1 },
    signal: new AbortController().signal,
  };
  const handle = handler.handle as (context: Partial<HandlerContext<unknown>>) => unknown;
  const result = handler.parseResult(await handle(context as Partial<HandlerContext<unknown>>));
  if (!result.ok) throw new Error(result.reason);
  return result.value as Record<string, unknown>;
}

const runAll = async (tasks: Awaited<ReturnType<typeof makeItem>>) =>
  Object.fromEntries(await Promise.all(tasks.map(async (task) => [task.type, await run(task)] as const)));

test('a document gets its four tasks, and each of them its result', async () => {
  const tasks = await makeItem(0);
  expect(tasks.map(({ type }) => type).sort()).toEqual([...filesDemo.types].sort());
  const results = await runAll(tasks);
  const source = await readFile(join(mediaDir, 'item-0', 'source.txt'));

  expect(results['word-count']).toMatchObject({ lines: 500, words: 6_000 });
  const zipped = await readFile(join(mediaDir, String(results['compress']?.['file'])));
  expect(gunzipSync(zipped).equals(source)).toBe(true);
  expect(results['compress']).toMatchObject({
    bytes: source.length,
    compressedBytes: zipped.length,
    sha256: createHash('sha256').update(source).digest('hex'),
  });
});

test('the index names the lines of every word', async () => {
  const tasks = await makeItem(3);
  const results = await runAll(tasks);
  const { file, terms } = results['search-index'] as { file: string; terms: number };
  const index = JSON.parse(await readFile(join(mediaDir, file), 'utf8')) as Record<string, number[]>;
  expect(Object.keys(index)).toHaveLength(terms);
  expect(terms).toBe(results['word-count']?.['distinct']);
  const lines = (await readFile(join(mediaDir, 'item-3', 'source.txt'), 'utf8')).split('\n');
  const [word = ''] = lines[7]?.split(' ') ?? [];
  expect(index[word]).toContain(7);
});

test('the preview is a PNG of the size that the result says', async () => {
  const tasks = await makeItem(0);
  const { preview } = await runAll(tasks);
  const png = await readFile(join(mediaDir, String(preview?.['file'])));
  expect(png.subarray(1, 4).toString('latin1')).toBe('PNG');
  expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([preview?.['width'], preview?.['height']]);
  const data = png.indexOf('IDAT');
  const rows = inflateSync(png.subarray(data + 4, data + 4 + png.readUInt32BE(data - 4)));
  expect(rows).toHaveLength(Number(preview?.['height']) * (Number(preview?.['width']) + 1));
});

test('the same number gives the same text, another number another', async () => {
  const text = (id: string) => readFile(join(mediaDir, id, 'source.txt'), 'utf8');
  await Promise.all([makeItem(1, 'a'), makeItem(1, 'b'), makeItem(11, 'c')]);
  expect(await text('a')).toBe(await text('b'));
  expect(await text('a')).not.toBe(await text('c'));
});

test('an attempt leaves nothing but what it names', async () => {
  await runAll(await makeItem(2));
  expect((await readdir(join(mediaDir, 'item-2'))).sort()).toEqual([
    'index.json',
    'preview.png',
    'source.txt',
    'source.txt.gz',
  ]);
});

test.each([
  ['empty', async () => (await makeItem(39))[0], 'document_empty'],
  ['missing', async () => ({ type: 'compress', payload: { document: 'nowhere' } }), 'document_missing'],
])('a document that is %s is not tried again', async (_, makeTask, code) => {
  const failure = await run((await makeTask()) as { type: string; payload: unknown }).catch(
    (error: unknown) => error,
  );
  expect(failure).toBeInstanceOf(NotRetryable);
  expect(failure).toMatchObject({ code });
});

test.each(['../secret', 'a/b', '', '.'])('a document cannot be named %j', async (document) => {
  await expect(run({ type: 'compress', payload: { document } })).rejects.toThrow('payload.document');
});
