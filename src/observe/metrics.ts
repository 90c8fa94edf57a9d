import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** Every metric of the API process. Labels are bounded: routes are patterns, outcomes are catalogue codes; no tenant, no id. */
export interface Metrics {
  /** The Prometheus text exposition. */
  text(): Promise<string>;
  readonly contentType: string;
  request(method: string, route: string, status: number, ms: number): void;
  /** `outcome`: accepted, replayed or an error code. `via`: http or nats. */
  submission(via: string, outcome: string, ms: number): void;
  /** Where to ask, at every scrape, for types of which tasks wait that no worker can run. */
  watchUnserved(unserved: () => readonly { type: string; version: number; waiting: number }[]): void;
}

const LATENCY_BUCKETS_S = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const requests = new Counter({
    name: 'taskledger_http_requests_total',
    help: 'HTTP requests answered',
    labelNames: ['method', 'route', 'status'],
    registers,
  });
  const requestSeconds = new Histogram({
    name: 'taskledger_http_request_duration_seconds',
    help: 'Time from a request to its answer',
    labelNames: ['route'],
    buckets: LATENCY_BUCKETS_S,
    registers,
  });
  const submissions = new Counter({
    name: 'taskledger_submissions_total',
    help: 'Submitted tasks by outcome: accepted, replayed, or the code of the error',
    labelNames: ['via', 'outcome'],
    registers,
  });
  const appendSeconds = new Histogram({
    name: 'taskledger_submission_append_seconds',
    help: 'Time to validate an accepted task and have the log confirm it',
    buckets: LATENCY_BUCKETS_S,
    registers,
  });
  const watchUnserved: Metrics['watchUnserved'] = (unserved) => {
    const gauge = new Gauge({
      name: 'taskledger_tasks_without_workers',
      help: 'Waiting tasks of types and versions for which no worker is registered',
      labelNames: ['type', 'version'],
      registers,
      collect() {
        gauge.reset();
        for (const { type, version, waiting } of unserved()) gauge.set({ type, version }, waiting);
      },
    });
  };
  return {
    watchUnserved,
    contentType: registry.contentType,
    text: () => registry.metrics(),
    request(method, route, status, ms) {
      requests.inc({ method, route, status });
      requestSeconds.observe({ route }, ms / 1_000);
    },
    submission(via, outcome, ms) {
      submissions.inc({ via, outcome });
      if (outcome === 'accepted') appendSeconds.observe(ms / 1_000);
    },
  };
}
