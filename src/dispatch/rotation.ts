import { KeyHeap } from './key-heap.ts';
import type { Lane } from './lane.ts';

/**
 * The turns of tenants within a priority class of a type: weighted deficit round robin in virtual time. A lane's turn
 * is at `turnAt`, each start moves it on by 1 / weight, and the earliest goes first: the deficit is paid at once, weights
 * of any size cost O(log lanes), and turns are spread instead of coming in runs. A lane that comes (back) starts at
 * the present turn: time without work, or blocked, gives no credit.
 *
 * Lanes that became blocked or empty stay until they surface, each at most once for every time it was listed.
 */
export class Rotation {
  readonly #lanes = new KeyHeap<Lane>();
  #now = 0;

  /** The lane may have something to give. */
  list(lane: Lane): void {
    if (lane.listed) return;
    lane.listed = true;
    if (lane.turnAt < this.#now) lane.turnAt = this.#now;
    this.#lanes.push(lane.turnAt, lane);
  }

  /** Whose turn it is, if any lane can give. */
  first(): Lane | undefined {
    for (;;) {
      const lane = this.#lanes.top();
      if (lane === undefined || lane.open) return lane;
      this.#lanes.pop();
      lane.listed = false;
    }
  }

  /** Takes out the lane whose turn it is; it must come `back`. */
  take(): Lane | undefined {
    const lane = this.first();
    if (lane !== undefined) this.#lanes.pop();
    return lane;
  }

  /** A lane that was taken has had its turn, or had nothing to give after all. */
  back(lane: Lane, started: boolean): void {
    if (started) {
      this.#now = lane.turnAt;
      lane.turnAt += 1 / lane.share.weight;
    }
    lane.listed = false;
    if (lane.open) this.list(lane);
  }
}
