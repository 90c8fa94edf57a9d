import { type KV, Kvm } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Names } from '../log/subjects.ts';
import { orUnavailable } from '../log/unavailable.ts';
import { monotonicMs } from './monotonic.ts';
import { Sightings, type Standing } from './redelivery.ts';
import type { WorkerEntry } from './worker-entry.ts';

/** Subject of a worker's key in the registry bucket: what a put of the client publishes to. */
export const entrySubject = (names: Names, workerId: string): string =>
  `$KV.${names.buckets.workers}.${workerId}`;

/** Looks other workers up. Throws `log_unavailable` when the bucket does not answer. */
export class WorkerRegistry {
  readonly #kv: KV;
  readonly #sightings = new Sightings();

  private constructor(kv: KV) {
    this.#kv = kv;
  }

  static async open(nc: NatsConnection, names: Names): Promise<WorkerRegistry> {
    return new WorkerRegistry(await orUnavailable(() => new Kvm(nc).open(names.buckets.workers)));
  }

  async find(workerId: string): Promise<{ entry: WorkerEntry; revision: number } | undefined> {
    const found = await orUnavailable(() => this.#kv.get(workerId));
    if (found === null || found.operation !== 'PUT') return undefined;
    return { entry: found.json<WorkerEntry>(), revision: found.revision };
  }

  async standingOf(workerId: string, attempt: string): Promise<Standing> {
    return this.#sightings.standing(workerId, attempt, await this.find(workerId), monotonicMs());
  }
}
