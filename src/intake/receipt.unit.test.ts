import { headers } from '@nats-io/transport-node';
import { describe, expect, test } from 'vitest';
import { TaskledgerError } from '../domain/errors.ts';
import { names } from '../log/subjects.ts';
import { taskIdOfKey } from './identity.ts';
import type { Intake, Rejection } from './intake.ts';
import type { SubmitOutcome } from './outcome.ts';
import { addressOf, receive } from './receipt.ts';

const accepted: SubmitOutcome = { ok: true, id: 'x', status: 'INGESTED', seq: 4, replayed: false };

/** An intake that answers what it is told, and remembers what it was asked. */
function setup(outcome: SubmitOutcome = accepted) {
  const submitted: { tenant: string; input: unknown; context: unknown }[] = [];
  const rejected: Rejection[] = [];
  const intake: Intake = {
    submit: async (tenant, input, context) => {
      submitted.push({ tenant, input, context });
      const { fallbackId, idempotencyKey } = context;
      const id = idempotencyKey === undefined ? fallbackId : taskIdOfKey(tenant, idempotencyKey);
      return outcome.ok && outcome === accepted ? { ...outcome, id: id ?? outcome.id } : outcome;
    },
    submitBatch: async () => [],
    reject: async (rejection) => {
      rejected.push(rejection);
      return { seq: 9, existed: false };
    },
    beginning: async () => undefined,
  };
  const take = (body: string, extra: Record<string, string> = {}, { seq = 7, nanos = 1_000n } = {}) => {
    const hdrs = headers();
    for (const [name, value] of Object.entries(extra)) hdrs.set(name, value);
    const data = new TextEncoder().encode(body);
    const message = { data, headers: hdrs, seq, timestampNanos: nanos, redelivered: false };
    const tenants = { get: (name: string) => (name === 'acme' ? {} : undefined) };
    return receive(message, { tenant: 'acme', type: 'mail' }, { intake, tenants });
  };
  return { take, submitted, rejected };
}

describe('the subject of a submission', () => {
  const at = (subject: string, prefix = '') => addressOf(names(prefix), subject);

  test('names the tenant and the type', () => {
    expect(at('submit.acme.mail')).toEqual({ tenant: 'acme', type: 'mail' });
    expect(at('staging_submit.acme.mail', 'staging_')).toEqual({ tenant: 'acme', type: 'mail' });
  });

  test.each([
    'submit.acme',
    'submit.acme.mail.x',
    'submit.Acme.mail',
    'submit.acme.*',
    'submit..mail',
    'other.acme.mail',
  ])('%s names nobody', (subject) => {
    expect(at(subject)).toBeUndefined();
  });
});

describe('a message', () => {
  test('without a key gets an id that is the same on every redelivery, and another in a stream made anew', async () => {
    const { take } = setup();
    const { taskId } = await take('{"payload":1}');
    expect((await take('{"payload":1}')).taskId).toBe(taskId);
    expect((await take('{"payload":1}', {}, { seq: 8 })).taskId).not.toBe(taskId);
    expect((await take('{"payload":1}', {}, { nanos: 2_000n })).taskId).not.toBe(taskId);
  });

  test('is submitted with the type of its subject, whatever the backlog', async () => {
    const { take, submitted } = setup();
    await take('{"payload":1}', { 'Idempotency-Key': 'k' });
    expect(submitted).toEqual([
      {
        tenant: 'acme',
        input: { type: 'mail', payload: 1 },
        context: expect.objectContaining({ idempotencyKey: 'k', ignoreBacklog: true }),
      },
    ]);
  });

  test('comes again when the log does not answer, and is not rejected', async () => {
    const error = new TaskledgerError('log_unavailable', { reason: 'no responders' });
    const { take, rejected } = setup({ ok: false, error, reasons: [] });
    await expect(take('{"payload":1}')).rejects.toBe(error);
    expect(rejected).toEqual([]);
  });

  test('that cannot be read is rejected without being submitted', async () => {
    const { take, submitted, rejected } = setup();
    const receipt = await take('{"payload":');
    expect(receipt).toMatchObject({ outcome: 'payload_not_json', answer: { ok: false, seq: 9 } });
    expect(submitted).toEqual([]);
    expect(rejected).toEqual([
      expect.objectContaining({ tenant: 'acme', type: 'mail', taskId: receipt.taskId }),
    ]);
  });
});

describe('Taskledger-Reply', () => {
  test.each(['_INBOX.abc', '_INBOX.a.b-c_d$1'])('%s is answered', async (subject) => {
    expect((await setup().take('{"payload":1}', { 'Taskledger-Reply': subject })).replyTo).toBe(subject);
  });

  test.each([
    'tasks.acme.mail.x.completed',
    '$JS.API.STREAM.DELETE.TASKS',
    '_INBOX',
    '_INBOX.',
    '_INBOX.*',
    '_INBOX.>',
    '_INBOX.a..b',
    '_INBOX.a.',
    'x._INBOX.a',
  ])('%s is not', async (subject) => {
    expect((await setup().take('{"payload":1}', { 'Taskledger-Reply': subject })).replyTo).toBeUndefined();
  });
});
