import { describe, expect, test } from 'vitest';
import { isName, isTaskId, NameSchema, TaskIdSchema } from './names.ts';

describe('a name', () => {
  test.each(['a', '7', 'acme', 'video-pipeline_2', `a${'b'.repeat(62)}`])('may be %s', (name) => {
    expect(isName(name)).toBe(true);
    expect(NameSchema.parse(name)).toBe(name);
  });

  test.each([
    '',
    'a.b',
    '*',
    'acme.*',
    '>',
    'a b',
    'Acme',
    '-a',
    '_a',
    'ümlaut',
    'a\n',
    'a\u0000',
    `a${'b'.repeat(63)}`,
    7,
    null,
    ['acme'],
  ])('may not be %j: it would become a subject token', (name) => {
    expect(isName(name)).toBe(false);
    expect(NameSchema.safeParse(name).success).toBe(false);
  });
});

describe('a task id', () => {
  test.each([
    ['v4', 'f47ac10b-58cc-4372-a567-0e02b2c3d479'],
    ['v5', '2ed6657d-e927-568b-95e1-2665a8aea6a2'],
    ['v7', '01890a5d-ac96-774b-bcce-b302099a8057'],
  ])('may be a UUID %s', (_, id) => {
    expect(isTaskId(id)).toBe(true);
    expect(TaskIdSchema.parse(id)).toBe(id);
  });

  test.each([
    'F47AC10B-58CC-4372-A567-0E02B2C3D479',
    'f47ac10b58cc4372a5670e02b2c3d479',
    '{f47ac10b-58cc-4372-a567-0e02b2c3d479}',
    'f47ac10b-58cc-4372-a567-0e02b2c3d479.x',
    'f47ac10b-58cc-4372-a567-0e02b2c3d479\n',
    '*',
    '',
    undefined,
  ])('may not be %j', (id) => {
    expect(isTaskId(id)).toBe(false);
    expect(TaskIdSchema.safeParse(id).success).toBe(false);
  });
});
