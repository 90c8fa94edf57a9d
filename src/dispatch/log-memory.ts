import type { Recorded } from '../domain/events.ts';
import { DispatchCore } from './core.ts';
import type { CoreSettings } from './decisions.ts';
import { LogAge } from './log-age.ts';
import { Outage } from './outage.ts';
import { RunningAttempts } from './running-attempts.ts';
import type { Snapshot, SnapshotSource } from './snapshot/format.ts';

/** All that a dispatcher knows from the log. Everything in it is folded from events, in their order, or comes from a snapshot. */
export class LogMemory {
  readonly core: DispatchCore;
  readonly attempts = new RunningAttempts();
  readonly outage = new Outage();
  readonly age: LogAge;
  /** Of the last event. */
  #eventId = '';

  constructor(settings: CoreSettings, { ageGrainMs }: { readonly ageGrainMs: number }) {
    this.core = new DispatchCore(settings);
    this.age = new LogAge(ageGrainMs);
  }

  observe(recorded: Recorded): void {
    const { seq, storedAt, event } = recorded;
    this.#eventId = event.id;
    this.age.note(seq, storedAt);
    this.core.observe(recorded);
    this.attempts.observe(event);
    this.outage.observe(recorded);
  }

  /** What a snapshot is written from; `takenAt` in ms since 1970. */
  source(takenAt: number): SnapshotSource {
    const { core } = this;
    return {
      header: () => ({
        position: core.position,
        eventId: this.#eventId,
        takenAt,
        tokens: core.tokens,
        age: this.age.grains,
        outage: this.outage.state,
        attempts: this.attempts.all,
      }),
      get position() {
        return core.position;
      },
      rows: (shard) => core.rows(shard),
    };
  }

  /** Before any event, and after all settings. */
  restore({ header, blocks }: Snapshot): void {
    this.#eventId = header.eventId;
    this.age.restore(header.age);
    this.outage.restore(header.outage);
    this.attempts.restore(header.attempts);
    this.core.restore({ position: header.position, tokens: header.tokens, blocks });
  }
}
