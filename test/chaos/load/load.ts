import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import type { Logger } from '../../../src/observe/log.ts';
import { connectNats } from '../../../src/platform/nats.ts';
import type { Evidence, JoinedSubmission, Operation, Schedule } from '../checker/evidence.ts';
import type { Stand } from '../stand/stand.ts';
import { type Clients, startClients } from './clients.ts';
import { openDoors } from './doors.ts';
import { type EventStream, followEvents } from './event-stream.ts';
import { type Call, callOver } from './http.ts';
import { startOperator } from './operator.ts';
import { endSchedules, putSchedules } from './schedules.ts';
import { type Subscriber, startSubscriber } from './subscriber.ts';
import { TENANTS } from './wishes.ts';

/** What those who use the installation have asked and heard. */
type Testimony = Pick<Evidence, 'operations' | 'joined' | 'pauses' | 'bulksAccepted' | 'feeds' | 'live'>;

/** Everybody who uses the installation: clients, schedules, an operator, and those who listen. */
export interface Load {
  readonly call: Call;
  readonly clients: Clients;
  readonly subscriber: Subscriber;
  readonly stream: EventStream;
  /** The one of the workers that tasks are drawn for from now on. */
  setRelease(release: number): void;
  /** Nothing more is asked for. Answers which slots must have fired; fewer when the run was `cutShortAt`, in ms since 1970. */
  endAsking(cutShortAt?: number): Promise<readonly Schedule[]>;
  /** Nobody listens any more. */
  endListening(): Promise<void>;
  testimony(): Testimony;
}

/** Name of their folder among those of the parts: what the trusted submitters have to say is in its log. */
export const CLIENTS = 'clients';

export async function startLoad(
  stand: Stand,
  options: {
    readonly seed: number;
    readonly seconds: number;
    readonly tasksPerSecond: number;
    /** Holds a folder for each part. */
    readonly partsDir: string;
    readonly record: (operation: Operation | JoinedSubmission) => void;
  },
): Promise<Load> {
  const { apis, keys, operatorKey, names } = stand;
  const { seed, seconds, tasksPerSecond, record } = options;
  const [tenant] = TENANTS;
  const key = keys.get(tenant) ?? '';
  const nc = await connectNats({ ...stand.config, natsUrl: stand.clientNatsUrl }, 'chaos clients');
  const call = callOver(apis);
  const planned = await putSchedules({ call, tenant, key, seconds });
  const doors = await openDoors({ call, keys, nc, names, logger: await clientsLogger(options.partsDir) });
  const subscriber = await startSubscriber(nc, names);
  const stream = followEvents(apis, operatorKey);
  let release = 1;
  const clients = startClients({ seed, tasksPerSecond, doors, release: () => release, record });
  const { statuses } = subscriber;
  const operator = startOperator({ seed, call, keys, operatorKey, statuses, record });
  return {
    call,
    clients,
    subscriber,
    stream,
    setRelease(next) {
      release = next;
    },
    async endAsking(cutShortAt) {
      await Promise.all([clients.stop(), operator.stop()]);
      return cutShortAt === undefined ? planned : endSchedules({ call, key }, planned, cutShortAt);
    },
    async endListening() {
      await Promise.all([subscriber.stop(), stream.stop()]);
      await doors.close();
      await nc.close();
    },
    testimony: () => ({
      operations: [...clients.operations, ...operator.commands],
      joined: clients.joined,
      pauses: operator.pauses,
      bulksAccepted: operator.bulks,
      feeds: { reader: subscriber.heard, http: stream.heard },
      live: subscriber.live,
    }),
  };
}

async function clientsLogger(partsDir: string): Promise<Logger> {
  const own = join(partsDir, CLIENTS);
  await mkdir(own, { recursive: true });
  const settings = { base: null, timestamp: pino.stdTimeFunctions.isoTime };
  const logger: Logger = pino(settings, pino.destination({ dest: join(own, 'log'), sync: true }));
  return logger;
}
