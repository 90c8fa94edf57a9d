import type { Logger } from '../observe/log.ts';
import type { Fleet } from '../registry/fleet.ts';

/** A type and version of which tasks wait and that no live worker takes. */
export interface Unserved {
  readonly type: string;
  readonly version: number;
  readonly waiting: number;
}

export interface WaitingLine extends Unserved {
  readonly key: string;
}

/** A worker may be starting, or all of them restarting: a short absence is no alarm. */
const ALARM_AFTER_MS = 5_000;
/** How often a lasting absence is told again. */
const REPEAT_MS = 600_000;

/** Raises the alarm for tasks that nobody can run. They wait; nothing else is done to them. */
export class NoWorkers {
  readonly #fleet: Pick<Fleet, 'serves'>;
  readonly #logger: Logger;
  /** When each line was first seen without workers, and when that was last told (monotonic ms). */
  readonly #absences = new Map<string, { readonly since: number; toldAt: number | undefined }>();

  constructor(fleet: Pick<Fleet, 'serves'>, logger: Logger) {
    this.#fleet = fleet;
    this.#logger = logger;
  }

  /** The lines that are without workers long enough to tell, at `now` (monotonic ms). */
  look(lines: Iterable<WaitingLine>, now: number): Unserved[] {
    const unserved: Unserved[] = [];
    for (const { key, type, version, waiting } of lines) {
      const absence = this.#absences.get(key);
      if (waiting === 0 || this.#fleet.serves(type, version)) {
        this.#absences.delete(key);
        if (absence?.toldAt !== undefined)
          this.#logger.info({ type, version }, 'tasks of the type can be run again');
        continue;
      }
      if (absence === undefined) {
        this.#absences.set(key, { since: now, toldAt: undefined });
        continue;
      }
      if (now - absence.since < ALARM_AFTER_MS) continue;
      unserved.push({ type, version, waiting });
      if (absence.toldAt !== undefined && now - absence.toldAt < REPEAT_MS) continue;
      absence.toldAt = now;
      this.#logger.warn(
        { type, version, waiting },
        'tasks wait and no worker is registered that can run them',
      );
    }
    return unserved;
  }
}
