import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import {
  type Attributes,
  type Context,
  type ContextManager,
  context,
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  type SpanKind,
  type SpanOptions,
  type SpanStatus,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';

/** A span that has ended. */
export interface RecordedSpan {
  readonly name: string;
  readonly kind: SpanKind | undefined;
  readonly attributes: Attributes;
  readonly links: readonly Link[];
  readonly status: SpanStatus | undefined;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
}

/** Registers, for this process, a tracer that keeps what it is told, as an SDK would send it. */
export function recordSpans(): { readonly spans: RecordedSpan[]; stop(): void } {
  const spans: RecordedSpan[] = [];
  trace.setGlobalTracerProvider({ getTracer: () => tracerInto(spans) });
  context.setGlobalContextManager(asyncContext());
  return {
    spans,
    stop() {
      trace.disable();
      context.disable();
    },
  };
}

const tracerInto = (spans: RecordedSpan[]): Tracer => {
  const startSpan = (name: string, options: SpanOptions = {}, within: Context = context.active()): Span => {
    const parent = options.root === true ? undefined : trace.getSpanContext(within);
    const own: SpanContext = {
      traceId: parent?.traceId ?? randomBytes(16).toString('hex'),
      spanId: randomBytes(8).toString('hex'),
      traceFlags: TraceFlags.SAMPLED,
    };
    const attributes: Attributes = { ...options.attributes };
    let status: SpanStatus | undefined;
    const span: Span = {
      spanContext: () => own,
      setAttribute: (key, value) => {
        attributes[key] = value;
        return span;
      },
      setAttributes: (more) => {
        Object.assign(attributes, more);
        return span;
      },
      setStatus: (given) => {
        status = given;
        return span;
      },
      addEvent: () => span,
      addLink: () => span,
      addLinks: () => span,
      updateName: () => span,
      isRecording: () => true,
      recordException: () => {},
      end: () =>
        void spans.push({
          name,
          kind: options.kind,
          attributes,
          links: options.links ?? [],
          status,
          traceId: own.traceId,
          spanId: own.spanId,
          parentId: parent?.spanId,
        }),
    };
    return span;
  };
  return { startSpan, startActiveSpan: () => undefined as never };
};

function asyncContext(): ContextManager {
  const storage = new AsyncLocalStorage<Context>();
  const manager: ContextManager = {
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (entered, work, self, ...args) => storage.run(entered, () => work.apply(self as never, args)),
    bind: (_entered, target) => target,
    enable: () => manager,
    disable: () => manager,
  };
  return manager;
}
