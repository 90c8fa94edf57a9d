import { describe, expect, test } from 'vitest';
import type { ErrorEntry } from './catalogue/entry.ts';
import { logErrors } from './catalogue/log.ts';
import { readModelErrors } from './catalogue/read-models.ts';
import { requestErrors } from './catalogue/requests.ts';
import { serverErrors } from './catalogue/servers.ts';
import { taskErrors } from './catalogue/tasks.ts';
import { catalogue, type ErrorCode, err, TaskledgerError } from './errors.ts';

const entries = Object.entries(catalogue) as [ErrorCode, ErrorEntry][];
const slotsOf = (...templates: string[]): string[] =>
  templates.flatMap((template) => [...template.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? ''));

describe.each(entries)('%s', (code, { status, retryable, message, fix }) => {
  test('has a code in snake case', () => {
    expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
  });

  test('has the status of a failure, and is retryable only where a retry can help', () => {
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(600);
    if (status === 429 || status === 503 || status === 504) expect(retryable).toBe(true);
    if ([400, 401, 403, 404, 405, 413, 415].includes(status)) expect(retryable).toBe(false);
  });

  test('says what is wrong and what to do next', () => {
    expect(message).not.toMatch(/[.\s]$/);
    expect(fix).toMatch(/^[A-Z].+[^.]\.$/s);
  });

  test('has no slot left when each has its detail', () => {
    const details = Object.fromEntries(slotsOf(message, fix).map((slot) => [slot, `<${slot}>`]));
    const error = new TaskledgerError(code, details);
    expect(`${error.message} ${error.fix}`).not.toMatch(/[{}]/);
    for (const slot of slotsOf(message)) expect(error.message).toContain(`<${slot}>`);
  });
});

test('no code stands in two subjects of the catalogue, where one would hide the other', () => {
  const subjects = [requestErrors, taskErrors, logErrors, readModelErrors, serverErrors];
  expect(subjects.flatMap((subject) => Object.keys(subject)).sort()).toEqual(Object.keys(catalogue).sort());
});

describe('an error', () => {
  test('is filled from its details, and names the field at fault', () => {
    const error = new TaskledgerError('payload_too_large', { field: 'tasks[3].payload', bytes: 9, limit: 8 });
    expect(error.message).toBe('tasks[3].payload has 9 bytes; the limit is 8');
    expect(error).toMatchObject({ field: 'tasks[3].payload', status: 413, retryable: false });
  });

  test('shows a slot whose detail is missing instead of hiding it', () => {
    expect(new TaskledgerError('task_missing').message).toBe('Task {taskId} does not exist');
  });

  test('leaves a slot that a detail brings along as it is', () => {
    const error = new TaskledgerError('request_invalid', { reason: '{field} is odd', field: 'payload' });
    expect(error.message).toBe('{field} is odd');
  });

  test('keeps its cause', () => {
    const cause = new Error('ECONNREFUSED');
    expect(new TaskledgerError('nats_unreachable', {}, { cause }).cause).toBe(cause);
  });

  test('as a value is the same error', () => {
    const result = err('task_missing', { taskId: 't' });
    expect(result).toMatchObject({ ok: false, error: { code: 'task_missing', details: { taskId: 't' } } });
  });
});
