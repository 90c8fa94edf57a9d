import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Names } from '../../src/log/subjects.ts';

/** What the log is right now. */
export interface LogState {
  /** The stream's time of creation: a log that was replaced has another. */
  readonly logId: string;
  readonly firstSeq: number;
  readonly lastSeq: number;
}

/** Facts about TASKS and HISTORY that decide where and whether a projector may read. */
export class LogInspector {
  readonly #nc: NatsConnection;
  readonly #names: Names;
  #jsm: Promise<JetStreamManager> | undefined;

  constructor(parts: { nc: NatsConnection; names: Names }) {
    this.#nc = parts.nc;
    this.#names = parts.names;
  }

  async state(): Promise<LogState> {
    const { created, state } = await (await this.#manager()).streams.info(this.#names.streams.tasks);
    return { logId: new Date(created).toISOString(), firstSeq: state.first_seq, lastSeq: state.last_seq };
  }

  /** Whether TASKS still has this sequence. */
  async holds(seq: number): Promise<boolean> {
    const jsm = await this.#manager();
    return (await jsm.streams.getMessage(this.#names.streams.tasks, { seq })) !== null;
  }

  /** The TASKS sequence of the last event in HISTORY, 0 when it has none. */
  async historyEnd(): Promise<number> {
    const jsm = await this.#manager();
    const stream = this.#names.streams.history;
    const { state } = await jsm.streams.info(stream);
    if (state.messages === 0) return 0;
    const last = await jsm.streams.getMessage(stream, { seq: state.last_seq });
    return Number(last?.header?.get('Nats-Stream-Source').split(' ')[1] ?? 0);
  }

  #manager(): Promise<JetStreamManager> {
    this.#jsm ??= jetstreamManager(this.#nc, { checkAPI: false }).catch((error: unknown) => {
      this.#jsm = undefined;
      throw error;
    });
    return this.#jsm;
  }
}
