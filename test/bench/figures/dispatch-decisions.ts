import { coreRate } from '../core-rate.ts';
import { round } from '../figure.ts';
import type { Measurement } from '../measurement.ts';

export const dispatchDecisions: Measurement = {
  name: 'dispatch_decisions',
  about:
    'what the deciding core does in a second by itself, without log or network: tasks decided, events folded',
  layout: [],
  async run(bench) {
    for (const waiting of [640, 64_000]) {
      const { decisionsPerSecond, microsPerTask } = coreRate({ tasks: 100_000, waiting });
      bench.report('dispatch_decisions', round(decisionsPerSecond), 'decisions/s', { waiting });
      bench.report('dispatch_decisions_cpu', round(microsPerTask, 2), 'CPU us/task', { waiting });
    }
  },
};
