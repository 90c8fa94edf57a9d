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
    expect(own.taskEvent('other', 'transcode', id, 'RETRY_CLAIMED')).not.toMatch(covers);
  });
});
