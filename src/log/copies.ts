import { JetStreamApiError } from '@nats-io/jetstream';
import { TaskledgerError } from '../domain/errors.ts';
import { isRefusal } from './refusal.ts';

/**
 * What the server says when all servers that its cluster has met are too few. Those that are away count, because copies can
 * be placed on them. When one is passed over, as it is full, another reason follows, and that may pass.
 */
const TOO_FEW = 'no suitable peers for placement';
/** A cluster that forms says the same from its first election until the last server has joined, which is a moment. */
const FORMING_MS = 10_000;

/** What a server tells of its cluster when we connect; `connect_urls`: of those that it hears at the moment. */
interface ClusterTold {
  readonly cluster?: string;
  readonly connect_urls?: string[];
}

/** Tells copies that these servers cannot hold, however long they are waited for, from servers that are not all there yet. */
export class CopiesJudge {
  readonly #replicas: number;
  readonly #cluster: () => ClusterTold;
  readonly #now: () => number;
  #since: number | undefined;

  constructor(parts: { replicas: number; cluster: () => ClusterTold; now?: () => number }) {
    this.#replicas = parts.replicas;
    this.#cluster = parts.cluster;
    this.#now = parts.now ?? (() => performance.now());
  }

  /** `config_invalid`, or `log_unavailable` while the cluster may be forming; undefined when it is about something else. */
  judge(cause: unknown): TaskledgerError | undefined {
    if (!(cause instanceof JetStreamApiError)) return undefined;
    if (isRefusal(cause, 'replicas_not_supported')) return this.#invalid(cause.message, cause);
    if (!isRefusal(cause, 'no_suitable_peers') || cause.message !== TOO_FEW) {
      this.#since = undefined;
      return undefined;
    }
    this.#since ??= this.#now();
    const { cluster = '', connect_urls: heard = [] } = this.#cluster();
    const known = heard.length > 0 && heard.length < this.#replicas ? String(heard.length) : 'fewer';
    const told = `${this.#replicas} copies need as many servers, and cluster "${cluster}" has ${known} (${TOO_FEW})`;
    if (this.#now() - this.#since >= FORMING_MS) return this.#invalid(told, cause);
    const reason = `${told}: unless it is still forming, lower TASKLEDGER_REPLICAS or add servers`;
    return new TaskledgerError('log_unavailable', { reason }, { cause });
  }

  #invalid(reason: string, cause: unknown): TaskledgerError {
    return new TaskledgerError('config_invalid', { key: 'TASKLEDGER_REPLICAS', reason }, { cause });
  }
}
