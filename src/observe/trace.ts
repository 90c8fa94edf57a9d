import {
  context as active,
  type Context,
  isSpanContextValid,
  ProxyTracerProvider,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';

/**
 * Spans, by the names of OpenTelemetry's conventions for messaging. Without an SDK that the process has registered they
 * cost next to nothing and a trace context that came with a submission is carried on as it is.
 *
 *   submit <type>    producer   a submission, until the log has confirmed it; its parent is what came with it
 *   process <type>   consumer   an attempt; its parent is the submission's span, or the attempt before, which is linked
 *
 * The context of a span goes into the events that it tells of, as a W3C traceparent.
 */
const NAME = 'taskledger';

/** Undefined without an SDK. */
function tracer(): Tracer | undefined {
  const provider = trace.getTracerProvider();
  return provider instanceof ProxyTracerProvider
    ? provider.getDelegateTracer(NAME)
    : provider.getTracer(NAME);
}

export interface Traced {
  /** Undefined without an SDK. */
  readonly span: Span | undefined;
  /** W3C traceparent to be carried on: the span's, or the parent's when there is no SDK. */
  readonly trace: string | undefined;
}

const SYSTEM = { 'messaging.system': 'taskledger' } as const;
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

export function beginSubmit({
  tenant,
  type,
  parent,
}: {
  tenant: string;
  type: string;
  /** W3C traceparent; without one, the span that is active in the caller. */
  parent: string | undefined;
}): Traced {
  const maker = tracer();
  if (maker === undefined) return { span: undefined, trace: parent };
  const span = maker.startSpan(
    `submit ${type}`,
    {
      kind: SpanKind.PRODUCER,
      attributes: {
        ...SYSTEM,
        'messaging.operation.name': 'submit',
        'messaging.operation.type': 'send',
        'messaging.destination.name': type,
        'taskledger.tenant': tenant,
      },
    },
    parent === undefined ? active.active() : contextOf(parent),
  );
  return { span, trace: traceparentOf(span) ?? parent };
}

export function endSubmit(
  { span }: Traced,
  outcome: { readonly ok: true; readonly id: string } | { readonly ok: false; readonly error: Error },
): void {
  if (span === undefined) return;
  if (outcome.ok) span.setAttribute('messaging.message.id', outcome.id);
  else failed(span, outcome.error);
  span.end();
}

export interface AttemptSpan {
  readonly tenant: string;
  readonly type: string;
  readonly taskId: string;
  readonly round: number;
  readonly attempt: number;
  readonly worker: string;
  /** W3C traceparent of the event that made this attempt possible. */
  readonly parent: string | undefined;
}

export function beginAttempt({ tenant, type, taskId, round, attempt, worker, parent }: AttemptSpan): Traced {
  const maker = tracer();
  if (maker === undefined) return { span: undefined, trace: parent };
  const before = parent === undefined ? undefined : contextOf(parent);
  const earlier = before === undefined || attempt === 1 ? undefined : trace.getSpanContext(before);
  const span = maker.startSpan(
    `process ${type}`,
    {
      kind: SpanKind.CONSUMER,
      attributes: {
        ...SYSTEM,
        'messaging.operation.name': 'process',
        'messaging.operation.type': 'process',
        'messaging.destination.name': type,
        'messaging.message.id': taskId,
        'taskledger.tenant': tenant,
        'taskledger.round': round,
        'taskledger.attempt': attempt,
        'taskledger.worker': worker,
      },
      root: before === undefined,
      ...(earlier === undefined ? {} : { links: [{ context: earlier }] }),
    },
    before,
  );
  return { span, trace: traceparentOf(span) ?? parent };
}

export function endAttempt(
  { span }: Traced,
  outcome: string,
  error?: { name: string; message: string },
): void {
  if (span === undefined) return;
  span.setAttribute('taskledger.outcome', outcome);
  if (error !== undefined) failed(span, error);
  span.end();
}

/** Runs `work` as what the span is about: spans that it makes become its children. */
export const within = <T>({ span }: Traced, work: () => T): T =>
  span === undefined ? work() : active.with(trace.setSpan(active.active(), span), work);

function failed(span: Span, error: { readonly name: string; readonly message: string }): void {
  span.setAttribute('error.type', 'code' in error ? String(error.code) : error.name);
  span.setStatus({ code: SpanStatusCode.ERROR, message: error.message });
}

/** A context of its own: what is active in this process has nothing to do with what came from elsewhere. */
function contextOf(traceparent: string): Context | undefined {
  const [, traceId = '', spanId = '', flags = ''] = TRACEPARENT.exec(traceparent) ?? [];
  const spanContext = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  return isSpanContextValid(spanContext) ? trace.setSpanContext(active.active(), spanContext) : undefined;
}

function traceparentOf(span: Span): string | undefined {
  const spanContext = span.spanContext();
  if (!isSpanContextValid(spanContext)) return undefined;
  const flags = (spanContext.traceFlags & TraceFlags.SAMPLED).toString(16).padStart(2, '0');
  return `00-${spanContext.traceId}-${spanContext.spanId}-${flags}`;
}
