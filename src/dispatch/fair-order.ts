import type { Lane } from './lane.ts';
import type { LiveTask } from './live-task.ts';
import { Rotation } from './rotation.ts';

/**
 * By class: how many starts better classes may be given in a row while this one could start something. So under any
 * load of better classes, class 4 gets at least every 33rd start, class 3 every 18th and class 2 every 11th
 * (AGEING + 1, and one for each worse class that is due at the same time). The same holds among the classes of one tenant.
 */
export const AGEING = [Number.POSITIVE_INFINITY, 8, 16, 32] as const;

/**
 * Which waiting task of a type goes next: the best class, or one that was passed over too often; in it the tenant whose
 * turn it is (see Rotation); of that tenant the oldest task. Costs O(log tenants), however many tasks wait, and nothing
 * for tasks and tenants that are held back: they are not in the rotations.
 */
export class FairOrder {
  readonly #rotations = [new Rotation(), new Rotation(), new Rotation(), new Rotation()] as const;
  readonly #passed = [0, 0, 0, 0];

  /** The lane may have something to give. */
  list(lane: Lane): void {
    this.#rotations[lane.priority - 1]?.list(lane);
  }

  /** Takes the next task out. */
  next(): LiveTask | undefined {
    for (;;) {
      const index = this.#choose();
      const rotation = this.#rotations[index];
      const lane = rotation?.take();
      if (rotation === undefined || lane === undefined) return undefined;
      const task = serve(lane);
      rotation.back(lane, task !== undefined);
      if (task !== undefined) {
        this.#note(index);
        return task;
      }
    }
  }

  /** The worst class that was passed over too often, else the best that can give; -1 when none can. */
  #choose(): number {
    for (let index = 3; index > 0; index -= 1) {
      const due = (this.#passed[index] ?? 0) >= (AGEING[index] ?? 0);
      if (due && this.#rotations[index]?.first() !== undefined) return index;
    }
    return this.#rotations.findIndex((rotation) => rotation.first() !== undefined);
  }

  #note(served: number): void {
    this.#passed[served] = 0;
    for (let index = served + 1; index < 4; index += 1)
      if (this.#rotations[index]?.first() !== undefined) this.#passed[index] = (this.#passed[index] ?? 0) + 1;
  }
}

/** A task of the lane's tenant: of the lane, or of a worse one that was passed over too often. */
function serve(lane: Lane): LiveTask | undefined {
  const { siblings } = lane;
  for (let index = 3; index >= lane.priority; index -= 1) {
    const worse = siblings[index];
    if (worse === undefined || worse.size === 0 || worse.passed < (AGEING[index] ?? 0)) continue;
    worse.passed = 0;
    const task = admitted(worse);
    if (task !== undefined) return task;
  }
  const task = admitted(lane);
  if (task === undefined) return undefined;
  lane.passed = 0;
  for (let index = lane.priority; index < 4; index += 1) {
    const worse = siblings[index];
    if (worse !== undefined && worse.size > 0) worse.passed += 1;
  }
  return task;
}

function admitted(lane: Lane): LiveTask | undefined {
  for (let task = lane.next(); task !== undefined; task = lane.next())
    if (!task.keyed || lane.share.gates.admits(task)) return task;
  return undefined;
}
