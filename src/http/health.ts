import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import type { StreamsCheck, StreamsLook } from '../log/streams-check.ts';
import type { Names } from '../log/subjects.ts';
import type { FlowCheck } from '../observe/flow-check.ts';
import type { NatsWatch } from '../platform/nats-watch.ts';
import type { Query } from '../query/query.ts';
import type { StreamsDesk } from '../retention/desk.ts';

export interface HealthCheck {
  readonly ok: boolean;
  /** What is wrong, or a figure worth knowing. */
  readonly detail?: string;
}

export interface HealthReport {
  /** Whether this process can accept tasks. Queries may be down meanwhile: see `checks.readModels`. */
  readonly ready: boolean;
  readonly checks: {
    readonly nats: HealthCheck;
    readonly log: HealthCheck;
    readonly readModels?: HealthCheck;
    /** Whether work that could be done is done; the API stays ready when it is not. */
    readonly flow?: HealthCheck;
    /**
     * Whether the streams are there and can store, HISTORY has everything, and no limit is about to take what is needed; no
     * reason to be unready either.
     */
    readonly streams?: HealthCheck;
  };
  /** What an acknowledged event survives (DESIGN.md 6). Null while the log cannot be asked. */
  readonly durability: { readonly replicas: number; readonly meaning: string } | null;
  /** Events that the read models are behind the log; null when unknown. */
  readonly lag: number | null;
}

export interface Health {
  check(): Promise<HealthReport>;
}

interface HealthOptions {
  readonly nc: NatsConnection;
  readonly natsWatch?: NatsWatch;
  readonly names: Names;
  /** Tells what keeps it from storing. */
  readonly log?: { readonly publisher: { trouble(): string | undefined } };
  readonly query?: Pick<Query, 'position'>;
  readonly flow?: Pick<FlowCheck, 'troubles'>;
  readonly streams?: Pick<StreamsDesk, 'trouble'>;
  readonly streamsCheck?: StreamsCheck;
}

/** No answer of a probe is waited for longer. */
const PROBE_MS = 2_000;

/**
 * Health of the API process. Postgres being down does not make it unready: submission and work go on, and taking the
 * process out of service would stop them.
 */
export function createHealth({
  nc,
  natsWatch,
  names,
  log: opened,
  query,
  flow,
  streams,
  streamsCheck,
}: HealthOptions): Health {
  return {
    async check() {
      const [nats, log, position, troubles, look] = await Promise.all([
        probe(() => nc.rtt()),
        probe(async () => {
          const jsm = await jetstreamManager(nc, { checkAPI: false });
          return jsm.streams.info(names.streams.tasks);
        }),
        query === undefined ? undefined : probe(() => query.position()),
        flow === undefined ? undefined : probe(() => flow.troubles()),
        streamsCheck === undefined ? undefined : probe(() => streamsCheck.look()),
      ]);
      const lacks = streams?.trouble();
      const unstored = opened?.publisher.trouble();
      const lag =
        log.ok && position?.ok === true ? Math.max(0, log.value.state.last_seq - position.value) : null;
      return {
        ready: nats.ok && log.ok && unstored === undefined,
        checks: {
          nats: nats.ok
            ? { ok: true, detail: `round trip ${nats.value} ms` }
            : { ok: false, detail: natsWatch?.trouble() ?? nats.detail },
          log: log.ok ? logCheckOf(log.value.state.last_seq, unstored) : log,
          ...(position !== undefined && {
            readModels: position.ok ? { ok: true, detail: `at sequence ${position.value}` } : position,
          }),
          ...((streams ?? look) !== undefined && { streams: streamsCheckOf(look, lacks) }),
          ...(troubles !== undefined && { flow: troubles.ok ? flowCheckOf(troubles.value) : troubles }),
        },
        durability: log.ok ? durabilityOf(log.value.config.num_replicas) : null,
        lag,
      };
    },
  };
}

const logCheckOf = (lastSeq: number, unstored: string | undefined): HealthCheck =>
  unstored === undefined ? { ok: true, detail: `last sequence ${lastSeq}` } : { ok: false, detail: unstored };

/** Without a trouble, remarks are the detail. */
function streamsCheckOf(look: Probed<StreamsLook> | undefined, lacks: string | undefined): HealthCheck {
  const { troubles, remarks } =
    look === undefined || look.ok
      ? (look?.value ?? { troubles: [], remarks: [] })
      : { troubles: [look.detail], remarks: [] };
  const wrong = lacks === undefined ? troubles : [...troubles, lacks];
  const told = wrong.length > 0 ? wrong : remarks;
  return { ok: wrong.length === 0, ...(told.length > 0 && { detail: told.join('; ') }) };
}

const flowCheckOf = (troubles: readonly string[]): HealthCheck =>
  troubles.length === 0 ? { ok: true } : { ok: false, detail: troubles.join('; ') };

function durabilityOf(replicas: number) {
  return {
    replicas,
    meaning:
      replicas === 1
        ? 'One copy. An acknowledged event survives a crash of the server process; a power loss may take the last ones, and a lost disk takes all.'
        : `${replicas} copies. An acknowledged event is on a majority of them; it survives the loss of ${Math.floor((replicas - 1) / 2)}.`,
  };
}

type Probed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly detail: string };

async function probe<T>(ask: () => Promise<T>): Promise<Probed<T>> {
  let timer: NodeJS.Timeout | undefined;
  try {
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${PROBE_MS} ms`)), PROBE_MS);
    });
    return { ok: true, value: await Promise.race([ask(), late]) };
  } catch (error) {
    return { ok: false, detail: error instanceof Error ? error.message : String(error) };
  } finally {
    clearTimeout(timer);
  }
}
