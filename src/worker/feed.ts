import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import { decodeEvent } from '../domain/codec.ts';
import type { EventLog } from '../log/event-log.ts';
import type { Names } from '../log/subjects.ts';
import { type Attempt, attemptKey } from './attempt.ts';
import { taskKey } from './worker-entry.ts';

/**
 * Hears on the live feed that a running attempt was asked to end or is over, and aborts it. A hint: a message that is
 * missed costs a handler's time, since the fence refuses what comes too late.
 */
export class Feed {
  readonly #parts: {
    readonly nc: NatsConnection;
    readonly names: Names;
    readonly active: ReadonlyMap<string, Attempt>;
  };
  #subscriptions: Subscription[] = [];

  constructor(parts: { nc: NatsConnection; names: Names; active: ReadonlyMap<string, Attempt> }) {
    this.#parts = parts;
  }

  start(types: Iterable<string>): void {
    const { nc, names } = this.#parts;
    for (const type of types) {
      for (const event of ['cancel_requested', 'retry_claimed']) {
        const callback = (error: Error | null, message: Msg) => {
          if (!error) this.#heard(message);
        };
        this.#subscriptions.push(nc.subscribe(names.feed('*', type, '*', event), { callback }));
      }
    }
  }

  stop(): void {
    if (this.#parts.nc.isClosed()) return;
    for (const subscription of this.#subscriptions.splice(0)) subscription.unsubscribe();
  }

  #heard(message: Msg): void {
    let event: ReturnType<typeof decodeEvent>;
    try {
      event = decodeEvent(message.string());
    } catch {
      return; // Unreadable events are the projectors' to raise an alarm about.
    }
    const attempt = this.#parts.active.get(attemptKey(taskKey(event.tenant, event.taskId), event.attempt));
    if (attempt === undefined) return;
    if (event.kind === 'CANCEL_REQUESTED') {
      const seq = Number(message.headers?.get('Nats-Sequence') ?? '');
      if (seq > 0) attempt.cancelSeq = seq;
      attempt.abort('cancelled');
    } else {
      attempt.abort('superseded');
    }
  }
}

/** The feed may have been missed while the connection was away: asks the log about every attempt that runs. */
export async function recheck(
  log: Pick<EventLog, 'readState'>,
  active: ReadonlyMap<string, Attempt>,
  workerId: string,
): Promise<void> {
  for (const attempt of active.values()) {
    const { tenant, id, seq } = attempt.state;
    const state = await log.readState(tenant, id, seq).catch(() => undefined);
    if (state === undefined || !active.has(attempt.key)) continue;
    if (state.holder !== workerId || state.attempt !== attempt.number) attempt.abort('superseded');
    else if (state.cancelRequested) attempt.abort('cancelled');
  }
}
