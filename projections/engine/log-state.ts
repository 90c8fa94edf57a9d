import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { type History, messageFrom, openHistory } from '../../src/log/history.ts';
import type { Names } from '../../src/log/subjects.ts';

/** What the log is right now. */
export interface LogState {
  /** The stream's time of creation: a log that was replaced or restored has another. */
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
    return (await (await this.#history()).bounds())?.last.sourceSeq ?? 0;
  }

  /** Where HISTORY has the first event that is not before this one of TASKS. */
  async historySeqOf(seq: number): Promise<number> {
    return (await (await this.#history()).find(({ sourceSeq }) => sourceSeq >= seq))?.seq ?? 1;
  }

  /** The first sequence that TASKS and HISTORY together have no gap after. */
  async firstKept(): Promise<number> {
    const { firstSeq } = await this.state();
    const bounds = await (await this.#history()).bounds();
    if (bounds === undefined || bounds.last.sourceSeq < firstSeq - 1) return firstSeq;
    return Math.min(firstSeq, bounds.first.sourceSeq);
  }

  /** The last event that was stored at or before an instant (ms since 1970); 0 when there is none. */
  async lastSeqAt(at: number): Promise<number> {
    const { firstSeq, lastSeq } = await this.state();
    // HISTORY notes when it drew an event, which is a moment later, or much later when it lags: it is asked of what TASKS no longer has.
    if ((await this.#storedAt(firstSeq)) > at) {
      const after = await (await this.#history()).find(({ storedAt }) => storedAt > at);
      return Math.max(0, Math.min(firstSeq, after?.sourceSeq ?? firstSeq) - 1);
    }
    let last = firstSeq;
    for (let end = lastSeq + 1; end - last > 1; ) {
      const middle = Math.floor((last + end) / 2);
      if ((await this.#storedAt(middle)) > at) end = middle;
      else last = middle;
    }
    return Math.min(last, lastSeq);
  }

  /** When TASKS stored this event or the next that it has (ms since 1970); Infinity when there is none. */
  async #storedAt(seq: number): Promise<number> {
    const found = await messageFrom(await this.#manager(), this.#names.streams.tasks, seq);
    return found?.time.getTime() ?? Number.POSITIVE_INFINITY;
  }

  async #history(): Promise<History> {
    return openHistory(await this.#manager(), this.#names);
  }

  #manager(): Promise<JetStreamManager> {
    this.#jsm ??= jetstreamManager(this.#nc, { checkAPI: false }).catch((error: unknown) => {
      this.#jsm = undefined;
      throw error;
    });
    return this.#jsm;
  }
}
