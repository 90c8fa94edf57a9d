import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import { isName } from '../domain/names.ts';
import type { Logger } from '../observe/log.ts';
import { createLogger } from '../observe/log.ts';
import { type Config, loadConfig } from '../platform/config.ts';
import type { NatsSettings } from '../platform/nats.ts';
import {
  type Handler,
  type Runnable,
  runnable,
  type TypedHandler,
  type VersionedHandler,
} from './handler.ts';
import type { WorkerHooks } from './hooks.ts';

/** What `createWorker` takes; `types` alone is needed. */
export interface WorkerOptions {
  /**
   * Where NATS is: a URL (several separated by commas), settings with credentials, or an open connection. Default: the
   * configuration (NATS_URL and so on). The worker closes only a connection that it made.
   */
  readonly nats?: string | Partial<NatsSettings> | NatsConnection;
  /** With an open connection: how the lease thread connects. Default: without credentials, to the connection's server. */
  readonly leaseNats?: string | Partial<NatsSettings>;
  /** Like TASKLEDGER_PREFIX. */
  readonly prefix?: string;
  /**
   * What to run, by task type: a handler, `defineTask(...).handle(fn)`, or either of them with the least and the
   * greatest version of the type that it knows: `{ handler, versions: [1, 2] }`. Others are never given to it.
   */
  readonly types: Readonly<Record<string, Handler | TypedHandler | VersionedHandler>>;
  /** Attempts at once: over all types (default 10), or by type (10 for one that is not named; the total is their sum). */
  readonly concurrency?: number | Readonly<Record<string, number>>;
  /** A lease that is not renewed for so many ms is lost. Default: what the types' shared consumers have, else the configuration. */
  readonly ackWaitMs?: number;
  /** The start of the worker's id; every start adds a part of its own. Default: the host name. */
  readonly id?: string;
  /** Release of the code that runs here: its failures and dead letters say so. Default: TASKLEDGER_WORKER_VERSION, else none is told. */
  readonly version?: string;
  /** `stop()` waits so many ms for running attempts before it aborts them. Default 20 000. */
  readonly shutdownGraceMs?: number;
  /** `start()` waits this long for NATS, over all its steps together, before it throws. Default: TASKLEDGER_START_TIMEOUT_MS. */
  readonly startTimeoutMs?: number;
  /** A handler that has not ended so many ms after its signal is given up. Default 5 000. */
  readonly abortGraceMs?: number;
  /** A worker whose event loop is stuck for more ms than this no longer keeps its leases. Default 300 000. */
  readonly maxBlockedMs?: number;
  /** Where outcomes are kept while the log does not answer, so that they outlive this process. Default: TASKLEDGER_SPOOL_DIR, else nowhere. */
  readonly spoolDir?: string;
  /** A rejection that nobody handles: `log` it and go on (default), or leave it to Node, which ends the process. */
  readonly strayRejections?: 'log' | 'crash';
  /** Told what becomes of attempts. */
  readonly hooks?: WorkerHooks;
  /** Default: JSON lines on standard output, from TASKLEDGER_LOG_LEVEL on. */
  readonly logger?: Logger;
}

/** Options with every default filled in. */
export interface WorkerPlan {
  readonly id: string;
  readonly version: string | undefined;
  readonly config: Config;
  readonly connection: NatsConnection | undefined;
  readonly leaseNats: NatsSettings;
  readonly runnables: ReadonlyMap<string, Runnable>;
  readonly total: number;
  readonly byType: ReadonlyMap<string, number>;
  /** Undefined when the consumers may say. */
  readonly ackWaitMs: number | undefined;
  readonly shutdownGraceMs: number;
  readonly startTimeoutMs: number;
  readonly abortGraceMs: number;
  readonly maxBlockedMs: number;
  readonly spoolDir: string | undefined;
  readonly strayRejections: 'log' | 'crash';
  readonly hooks: WorkerHooks;
  readonly logger: Logger;
}

const DEFAULT_CONCURRENCY = 10;
/** What events and the registry keep of a release. */
const MAX_VERSION_LENGTH = 100;
/** Each has a request for work open. */
const MAX_VERSIONS = 16;

/** Throws `name_invalid` for a type that is no name, and `config_invalid` for a number that makes no sense. */
export function planOf(options: WorkerOptions): WorkerPlan {
  const types = Object.keys(options.types);
  if (types.length === 0)
    throw new TaskledgerError('config_invalid', { key: 'types', reason: 'no type is given' });
  for (const type of types) {
    if (!isName(type)) throw new TaskledgerError('name_invalid', { field: 'types', value: type });
    const given = options.types[type];
    const handler = typeof given === 'object' && 'handler' in given ? given.handler : given;
    if (typeof handler === 'object' && handler.type !== type)
      throw new TaskledgerError('config_invalid', {
        key: `types.${type}`,
        reason: `its handler is defined for ${handler.type}`,
      });
  }
  const environment = loadConfig();
  const connection = isConnection(options.nats) ? options.nats : undefined;
  const base = { ...environment, ...(options.prefix === undefined ? {} : { prefix: options.prefix }) };
  const config = Object.freeze({
    ...base,
    ...(isConnection(options.nats) ? {} : settingsOf(options.nats)),
    ...(options.ackWaitMs === undefined ? {} : { ackWaitMs: positive('ackWaitMs', options.ackWaitMs) }),
  });
  const leaseNats: NatsSettings =
    connection === undefined
      ? config
      : {
          natsUrl: connection.getServer(),
          natsCreds: undefined,
          natsUser: undefined,
          natsPassword: undefined,
        };
  const logger = options.logger ?? createLogger(config);
  const id = workerId(options.id ?? hostname());
  return {
    id,
    version: workerVersion(options.version ?? config.workerVersion),
    config,
    connection,
    leaseNats: { ...leaseNats, ...settingsOf(options.leaseNats) },
    runnables: new Map(
      Object.entries(options.types).map(
        ([type, handler]) =>
          [type, versioned(type, runnable(handler as Handler<never> | TypedHandler))] as const,
      ),
    ),
    ...concurrencyOf(options.concurrency ?? DEFAULT_CONCURRENCY, types),
    ackWaitMs: options.ackWaitMs,
    shutdownGraceMs: options.shutdownGraceMs ?? 20_000,
    startTimeoutMs: options.startTimeoutMs ?? config.startTimeoutMs,
    abortGraceMs: options.abortGraceMs ?? 5_000,
    maxBlockedMs: options.maxBlockedMs ?? 300_000,
    spoolDir: options.spoolDir ?? config.spoolDir,
    strayRejections: options.strayRejections ?? 'log',
    hooks: options.hooks ?? {},
    logger: logger.child({ worker: id }),
  };
}

function versioned(type: string, of: Runnable): Runnable {
  const [least, greatest] = of.versions;
  positive(`versions.${type}`, least);
  positive(`versions.${type}`, greatest);
  if (least > greatest || greatest - least >= MAX_VERSIONS)
    throw new TaskledgerError('config_invalid', {
      key: `versions.${type}`,
      reason: `[${least}, ${greatest}] is not a range of at most ${MAX_VERSIONS} versions`,
    });
  return of;
}

function concurrencyOf(
  concurrency: number | Readonly<Record<string, number>>,
  types: readonly string[],
): { total: number; byType: ReadonlyMap<string, number> } {
  if (typeof concurrency === 'number')
    return { total: positive('concurrency', concurrency), byType: new Map() };
  const byType = new Map(
    types.map((type) => [type, positive(`concurrency.${type}`, concurrency[type] ?? DEFAULT_CONCURRENCY)]),
  );
  return { total: [...byType.values()].reduce((sum, limit) => sum + limit, 0), byType };
}

function positive(key: string, value: number): number {
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new TaskledgerError('config_invalid', { key, reason: `${value} is not a whole number above 0` });
}

function workerVersion(version: string | undefined): string | undefined {
  if (version === undefined || (version.length > 0 && version.length <= MAX_VERSION_LENGTH)) return version;
  throw new TaskledgerError('config_invalid', {
    key: 'version',
    reason: `it must have 1 to ${MAX_VERSION_LENGTH} characters`,
  });
}

/** Names an incarnation, in characters that a registry key may have. */
const workerId = (start: string): string =>
  `${start.replace(/[^a-zA-Z0-9_-]/g, '-').slice(0, 80)}-${process.pid}-${randomBytes(4).toString('hex')}`;

const isConnection = (nats: WorkerOptions['nats']): nats is NatsConnection =>
  typeof nats === 'object' && 'subscribe' in nats;

const settingsOf = (nats: string | Partial<NatsSettings> | undefined): Partial<NatsSettings> =>
  typeof nats === 'string' ? { natsUrl: nats } : (nats ?? {});
