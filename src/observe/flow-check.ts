import { Kvm } from '@nats-io/kv';
import type { NatsConnection, Subscription } from '@nats-io/transport-node';
import type { Service } from '../platform/service.ts';
import { blame, Flow, type FlowNotice, serves, type WorkerSight } from './flow.ts';

export interface FlowCheck extends Service {
  /** What holds work up, one sentence each; empty while work flows. */
  troubles(): Promise<string[]>;
}

interface FlowCheckParts {
  readonly nc: NatsConnection;
  /** Where dispatchers announce. */
  readonly backlog: string;
  /** Bucket of the worker registry. It is read only when something looks stuck. */
  readonly workers: string;
  /** Looks at what such a worker takes, else at everything. */
  readonly takenBy?: Pick<WorkerSight, 'types' | 'versions'>;
  /** Monotonic, in ms. */
  readonly now?: () => number;
}

export function createFlowCheck({
  nc,
  backlog,
  workers,
  takenBy,
  now: clock = () => performance.now(),
}: FlowCheckParts): FlowCheck {
  const flow = new Flow();
  let subscription: Subscription | undefined;
  return {
    name: 'flow check',
    async start() {
      subscription = nc.subscribe(backlog, {
        callback: (error, message) => {
          const notice = error === null ? noticeIn(message.string()) : undefined;
          if (notice !== undefined) flow.heard(notice, clock());
        },
      });
    },
    async stop() {
      if (subscription !== undefined && !subscription.isClosed()) subscription.unsubscribe();
      subscription = undefined;
    },
    async troubles() {
      const now = clock();
      const silence = flow.silence(now);
      if (silence !== undefined) return [silence];
      const stalled = flow.stalled(now).filter(({ line }) => takenBy === undefined || serves(takenBy, line));
      if (stalled.length === 0) return [];
      const sights = await workersIn(nc, workers);
      return stalled.flatMap((line) => blame(line, sights) ?? []);
    },
  };
}

async function workersIn(nc: NatsConnection, bucket: string): Promise<WorkerSight[]> {
  const kv = await new Kvm(nc).open(bucket);
  const sights: WorkerSight[] = [];
  for await (const key of await kv.keys()) {
    const entry = await kv.get(key);
    if (entry?.operation === 'PUT') sights.push(entry.json<WorkerSight>());
  }
  return sights;
}

function noticeIn(text: string): FlowNotice | undefined {
  try {
    const notice = JSON.parse(text) as Partial<FlowNotice> | null;
    return typeof notice?.waiting === 'object' ? (notice as FlowNotice) : undefined;
  } catch {
    return undefined;
  }
}
