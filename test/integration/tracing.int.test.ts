import { randomUUID } from 'node:crypto';
import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createSubmitter } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { type RecordedSpan, recordSpans } from '../support/memory-tracer.ts';
import { openWorkerRig, TENANT, TYPE, type WorkerRig } from '../support/worker-rig.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const CALLER = '00f067aa0ba902b7';
const policy = { backoff: { kind: 'fixed', baseMs: 1 } } as const;

let rig: WorkerRig;
let stop = (): void => {};
beforeAll(async () => {
  rig = await openWorkerRig(import.meta.url);
});
afterEach(async () => {
  stop();
  await rig.stopWorkers();
});
afterAll(() => rig.stop());

async function submit(trace_?: string): Promise<string> {
  const { prefix = '' } = rig.options;
  const submitter = await createSubmitter({ nats: rig.world.nc, tenant: TENANT, prefix });
  const traced = trace_ === undefined ? {} : { trace: trace_ };
  const outcome = await submitter.submit({ type: TYPE, payload: { n: 1 }, policy }, traced);
  await submitter.close();
  if (!outcome.ok) throw outcome.error;
  await queue(outcome.id);
  return outcome.id;
}

/** As the dispatcher does it: with the trace context of the event that made it possible. */
async function queue(id: string): Promise<void> {
  const carried = (await rig.world.log.readTask(TENANT, id)).at(-1)?.event.trace;
  await rig.world.execute(id, () => ({
    kind: 'queue',
    eventId: randomUUID(),
    at: Date.now(),
    actor: { kind: 'dispatcher', id: 'test' },
    inlinePayload: true,
    ...(carried === undefined ? {} : { trace: carried }),
  }));
}

const tracesOf = (id: string) =>
  new Map((rig.world.book.get(id) ?? []).map(({ event }) => [event.kind, event.trace] as const));
const traceparent = ({ traceId, spanId }: RecordedSpan) => `00-${traceId}-${spanId}-01`;

test('a submission, its attempts and what a handler does are spans of one trace, and a retry is linked to the attempt before', async () => {
  const recorded = recordSpans();
  stop = () => recorded.stop();
  let attempts = 0;
  await rig.worker({
    types: {
      [TYPE]: () => {
        attempts += 1;
        trace.getTracer('handler').startSpan(`inner ${attempts}`).end();
        if (attempts === 1) throw new Error('not yet');
        return 'done';
      },
    },
  });
  const id = await submit(`00-${TRACE_ID}-${CALLER}-01`);
  await rig.event(id, 'FAILED');
  await queue(id);
  await rig.event(id, 'COMPLETED');
  const named = (name: string) => recorded.spans.filter((span) => span.name === name);
  await eventually(() => expect(named(`process ${TYPE}`)).toHaveLength(2));
  const [submitted] = named(`submit ${TYPE}`);
  const [first, second] = named(`process ${TYPE}`);
  const [inner] = named('inner 1');
  if (!submitted || !first || !second || !inner) throw new Error('a span is missing');

  expect(submitted).toMatchObject({
    kind: SpanKind.PRODUCER,
    traceId: TRACE_ID,
    parentId: CALLER,
    attributes: {
      'messaging.system': 'taskledger',
      'messaging.operation.type': 'send',
      'messaging.destination.name': TYPE,
      'messaging.message.id': id,
      'taskledger.tenant': TENANT,
    },
  });
  expect(first).toMatchObject({
    kind: SpanKind.CONSUMER,
    traceId: TRACE_ID,
    parentId: submitted.spanId,
    links: [],
    status: { code: SpanStatusCode.ERROR, message: 'not yet' },
    attributes: { 'taskledger.attempt': 1, 'taskledger.outcome': 'failed', 'messaging.message.id': id },
  });
  expect(inner).toMatchObject({ traceId: TRACE_ID, parentId: first.spanId });
  expect(second).toMatchObject({
    traceId: TRACE_ID,
    parentId: first.spanId,
    links: [{ context: { spanId: first.spanId } }],
    status: undefined,
    attributes: { 'taskledger.attempt': 2, 'taskledger.outcome': 'completed' },
  });
  expect(tracesOf(id).get('INGESTED')).toBe(traceparent(submitted));
  expect(tracesOf(id).get('FAILED')).toBe(traceparent(first));
  expect(tracesOf(id).get('COMPLETED')).toBe(traceparent(second));
});

test('without an SDK the trace context that came with a submission is carried to its last event', async () => {
  await rig.worker({ types: { [TYPE]: () => 'done' } });
  const given = `00-${TRACE_ID}-${CALLER}-00`;
  const id = await submit(given);
  await rig.event(id, 'COMPLETED');
  expect([...tracesOf(id)]).toEqual(
    ['INGESTED', 'QUEUED', 'CLAIMED', 'PROCESSING', 'COMPLETED'].map((kind) => [kind, given]),
  );
  const untraced = await submit();
  await rig.event(untraced, 'COMPLETED');
  expect(new Set(tracesOf(untraced).values())).toEqual(new Set([undefined]));
});
