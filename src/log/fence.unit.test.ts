import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { names } from './subjects.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const sources = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .map((file) => join(folder, file))
    .filter((file) => /\.(ts|mjs)$/.test(file) && !file.includes('.test.'));

const filesThatSay = (pattern: RegExp): string[] =>
  ['src', 'projections', 'deploy']
    .flatMap(sources)
    .filter((file) => pattern.test(readFileSync(join(ROOT, file), 'utf8')))
    .map((file) => relative('.', file));

describe('the fence', () => {
  test('is written by one file: no other names the expectation headers', () => {
    expect(filesThatSay(/Nats-Expected-Last/i)).toEqual(['src/log/append.ts']);
  });

  test('is not written through the client either', () => {
    expect(filesThatSay(/lastSubjectSequence/)).toEqual([]);
  });

  test('is the same string for every event of a task, whatever its type', () => {
    const staging = names('staging_');
    const id = '0b6f1c1e-0000-4000-8000-000000000000';
    expect(staging.fence('acme', id)).toBe(`staging_tasks.acme.*.${id}.*`);
  });

  test('covers every subject of the task', () => {
    const own = names('');
    const id = '0b6f1c1e-0000-4000-8000-000000000000';
    const covers = new RegExp(`^${own.fence('acme', id).replaceAll('.', '\\.').replaceAll('*', '[^.]+')}$`);
    expect(own.taskEvent('acme', 'transcode', id, 'RETRY_CLAIMED')).toMatch(covers);
    expect(own.taskEvent('acme', 'transcode', id, 'QUEUED', 2)).toMatch(covers);
    expect(own.taskEvent('other', 'transcode', id, 'RETRY_CLAIMED')).not.toMatch(covers);
  });
});

describe('work items of a version', () => {
  const own = names('');
  const id = '0b6f1c1e-0000-4000-8000-000000000000';

  test('are not on the subject of another version', () => {
    expect(own.taskEvent('acme', 'transcode', id, 'QUEUED', 1)).toBe(`tasks.acme.transcode.${id}.queued`);
    expect(own.taskEvent('acme', 'transcode', id, 'QUEUED', 2)).toBe(`tasks.acme.transcode.${id}.queued_v2`);
    expect(own.work('transcode')).toBe('tasks.*.transcode.*.queued');
    expect(own.work('transcode', 2)).toBe('tasks.*.transcode.*.queued_v2');
  });

  test('have a consumer that no other type or version can have', () => {
    const all = ['a', 'a_v2', 'a_v', 'a_2'].flatMap((type) =>
      [1, 2, 22].map((v) => own.workConsumer(type, v)),
    );
    expect(new Set(all).size).toBe(all.length);
  });

  test('differ in their QUEUED events only', () => {
    expect(own.taskEvent('acme', 'a', id, 'CLAIMED', 2)).toBe(own.taskEvent('acme', 'a', id, 'CLAIMED'));
  });
});
