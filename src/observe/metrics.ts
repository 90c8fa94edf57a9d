import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { type Reading, type SignalName, signals } from './signals.ts';

/** The metrics of a process (signals.ts). The API counts as it goes; other parts are read when they are asked for. */
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

/** `readings`: what other parts of the process have to tell. */
export function createMetrics(readings: () => readonly Reading[] = () => []): Metrics {
  const registry = new Registry();
  const requests = new Counter({ ...settingsOf('httpRequests'), registers: [registry] });
  const requestSeconds = histogram('httpSeconds', registry);
  const submissions = new Counter({ ...settingsOf('submissions'), registers: [registry] });
  const appendSeconds = histogram('submissionSeconds', registry);
  const watchUnserved: Metrics['watchUnserved'] = (unserved) => {
    const gauge = new Gauge({
      ...settingsOf('unserved'),
      registers: [registry],
      collect() {
        gauge.reset();
        for (const { type, version, waiting } of unserved()) gauge.set({ type, version }, waiting);
      },
    });
  };
  return {
    watchUnserved,
    contentType: registry.contentType,
    text: async () => (await registry.metrics()) + (await readingsText(readings())),
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

/** The exposition of readings alone. */
export async function readingsText(readings: readonly Reading[]): Promise<string> {
  const registry = new Registry();
  const made = new Map<SignalName, Counter | Gauge>();
  for (const { signal, labels = {}, value } of readings) {
    let metric = made.get(signal);
    if (metric === undefined) {
      const Kind = signals[signal].kind === 'counter' ? Counter : Gauge;
      metric = new Kind({ ...settingsOf(signal), registers: [registry] });
      made.set(signal, metric);
    }
    metric.inc(labels, value);
  }
  return registry.metrics();
}

const settingsOf = (signal: SignalName) => {
  const { name, meaning, labels } = signals[signal];
  return { name, help: meaning, labelNames: [...labels] };
};

const histogram = (signal: SignalName, registry: Registry) =>
  new Histogram({ ...settingsOf(signal), buckets: LATENCY_BUCKETS_S, registers: [registry] });
