import { errorShape } from '../../src/domain/fingerprint.ts';
import { causeOfDeath, type Letter } from './letter.ts';

/** How a group of dead letters changes. Adding two changes gives the change of both batches. */
export interface GroupChange {
  readonly tenant: string;
  readonly type: string;
  readonly fingerprint: string;
  open: number;
  replayed: number;
  discarded: number;
  deaths: number;
  /** Of the deaths in the batch; null when it has none. */
  seen: Seen | null;
}

export interface Seen {
  readonly firstAt: number;
  readonly lastAt: number;
  readonly lastSeq: number;
  readonly errorName: string;
  readonly shape: string;
  readonly sampleId: string;
  readonly sampleMessage: string;
}

/** Adds up what a batch changes in the groups. */
export class GroupChanges {
  readonly #groups = new Map<string, GroupChange>();

  /** A death, as the letter tells it. */
  death(tenant: string, id: string, letter: Letter): void {
    const group = this.#of(tenant, letter);
    const { deadAt: at, seq } = letter;
    const cause = causeOfDeath(letter.error, letter.reason);
    group.deaths += 1;
    const first = Math.min(group.seen?.firstAt ?? at, at);
    const last = Math.max(group.seen?.lastAt ?? at, at);
    const newest =
      group.seen !== null && group.seen.lastSeq > seq
        ? group.seen
        : {
            lastSeq: seq,
            errorName: cause.name,
            shape: errorShape(cause).shape,
            sampleId: id,
            sampleMessage: cause.message.slice(0, SAMPLE_CHARACTERS),
          };
    group.seen = { ...newest, firstAt: first, lastAt: last };
  }

  /** What a task's letter was before the batch, and what it is after it. */
  moved(tenant: string, before: Letter | null, after: Letter | null): void {
    if (before !== null) this.#of(tenant, before)[before.state] -= 1;
    if (after !== null) this.#of(tenant, after)[after.state] += 1;
  }

  list(): GroupChange[] {
    return [...this.#groups.values()].filter(
      ({ open, replayed, discarded, deaths }) =>
        open !== 0 || replayed !== 0 || discarded !== 0 || deaths > 0,
    );
  }

  #of(tenant: string, { type, fingerprint }: Letter): GroupChange {
    const key = `${tenant} ${type} ${fingerprint}`;
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = { tenant, type, fingerprint, open: 0, replayed: 0, discarded: 0, deaths: 0, seen: null };
      this.#groups.set(key, group);
    }
    return group;
  }
}

const SAMPLE_CHARACTERS = 1_000;
