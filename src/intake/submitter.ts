import type { NatsConnection } from '@nats-io/transport-node';
import type { Actor } from '../domain/events.ts';
import { openLog } from '../log/open.ts';
import { clockOfServers } from '../log/server-clock.ts';
import { names } from '../log/subjects.ts';
import { type Logger, silentLogger } from '../observe/log.ts';
import { monotonicClock } from '../platform/clock.ts';
import { type Config, loadConfig } from '../platform/config.ts';
import { connectNats } from '../platform/nats.ts';
import { Patience } from '../platform/patience.ts';
import { serviceGroup } from '../platform/service.ts';
import { mirrorSubmissionSettings } from '../registry/registry.ts';
import { createBacklog } from './backlog.ts';
import { createIntake } from './intake.ts';
import type { SubmitOutcome } from './outcome.ts';
import { openSharedIntake } from './shared.ts';
import type { TaskInput } from './submission.ts';

/**
 * Submits tasks of one tenant straight to the log: for trusted publishers inside the orchestrator's NATS account. What is
 * wrong with a submission, and a log that does not answer, are outcomes (`ok: false`), not throws.
 */
export interface Submitter {
  /** The same checks, idempotency, backpressure and rates as `POST /v1/tasks`. `key` as in `Idempotency-Key`. */
  submit(input: TaskInput, options?: SubmitOptions): Promise<SubmitOutcome>;
  /** All at once; the outcomes stand in the order of the inputs. */
  submitBatch(inputs: readonly TaskInput[], options?: Pick<SubmitOptions, 'trace'>): Promise<SubmitOutcome[]>;
  /** Waits for nothing: submissions in flight fail with `log_unavailable`. Closes the connection that it opened. */
  close(): Promise<void>;
}

export interface SubmitOptions {
  /** The idempotency key: a repeat within the hot window answers with the first submission's task and `replayed: true`. */
  readonly key?: string;
  /** W3C traceparent. */
  readonly trace?: string;
}

export interface SubmitterOptions {
  /** URL of the servers, or a connection, which then stays the caller's. Default: NATS_URL. */
  readonly nats?: string | NatsConnection;
  /** Whose tasks. It is not asked whether the tenant exists. */
  readonly tenant: string;
  /** Default: TASKLEDGER_PREFIX. */
  readonly prefix?: string;
  /** Who the events say submitted; `submitter` by default. */
  readonly name?: string;
  /** Settings that differ from those of the environment. */
  readonly config?: Partial<Config>;
  /** Default: none. */
  readonly logger?: Logger;
}

/**
 * Connects and loads the settings of types. Throws `nats_unreachable` or `log_unavailable`.
 *
 * @example
 * import { createSubmitter } from 'taskledger';
 *
 * const submitter = await createSubmitter({ tenant: 'demo', nats: 'nats://127.0.0.1:4222' });
 * const outcome = await submitter.submit({ type: 'greet', payload: 'Ada' }, { key: 'greet-ada' });
 * if (outcome.ok) console.log(outcome.id, outcome.seq, outcome.replayed);
 * else console.error(outcome.error.code, outcome.error.field, outcome.error.fix);
 * await submitter.close();
 */
export async function createSubmitter(options: SubmitterOptions): Promise<Submitter> {
  const { nats, tenant, name = 'submitter', logger = silentLogger } = options;
  const config = { ...loadConfig(), ...options.config };
  const own = typeof nats !== 'object';
  const nc = own
    ? await connectNats({ ...config, natsUrl: nats ?? config.natsUrl }, `taskledger ${name}`)
    : nats;
  const subjects = names(options.prefix ?? config.prefix);
  const log = await openLog({ nc, names: subjects, config, logger });
  const settings = mirrorSubmissionSettings({ nc, names: subjects, logger });
  const { tenants, types } = settings;
  const clock = clockOfServers(nc, subjects);
  const backlog = createBacklog({
    nc,
    names: subjects,
    clock: monotonicClock,
    logger,
    limitOf: (type) => types.get(type)?.maxBacklog ?? config.maxBacklog,
    delayedLimit: config.maxDelayed,
    tenantLimitOf: (name) => tenants.get(name)?.maxBacklog,
  });
  const parts = serviceGroup('submitter', [clock, settings, backlog]);
  const close = async (): Promise<void> => {
    await parts.stop();
    await log.close();
    if (own) await nc.close();
  };
  try {
    await parts.start(new Patience({ forMs: config.startTimeoutMs }));
  } catch (error) {
    await close();
    throw error;
  }
  const { rates, windows } = openSharedIntake({ nc, names: subjects, config, clock, logger, tenants, types });
  const intake = createIntake({ log, types, config, clock, backlog, rates, windows });
  const actor: Actor = { kind: 'intake', id: name };
  return {
    submit: (input, { key, trace } = {}) =>
      intake.submit(tenant, input, { actor, trace, idempotencyKey: key }),
    submitBatch: (inputs, { trace } = {}) => intake.submitBatch(tenant, inputs, { actor, trace }),
    close,
  };
}
