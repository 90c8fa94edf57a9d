import { hashOf, readId } from './id-bits.ts';
import type { LiveTask } from './live-task.ts';

/** A power of two. So many that a shard of a million tasks is looked through, or grows, in a millisecond or two. */
export const SHARDS = 1_024;
const SHARD_BITS = 10;
const LEAST_SLOTS = 8;
/** A shard has more slots than tasks, so that a search ends soon. */
const FULLEST = 0.75;
/** Its multiples, modulo a power of two, are all the numbers below that in a scattered order. */
const ODD = 0x9e3779b1;

/** Live tasks by tenant and id: an id is unique in its tenant. In shards, so that nothing grows or is walked all at once. */
export class TaskIndex {
  readonly #shards = Array.from({ length: SHARDS }, () => new Shard());
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(tenant: string, id: string): LiveTask | undefined {
    const [id0, id1, id2, id3] = readId(id);
    const hash = hashOf(id0, id1, id2, id3);
    const { slots } = this.#shards[hash & (SHARDS - 1)] as Shard;
    const mask = slots.length - 1;
    for (let at = (hash >>> SHARD_BITS) & mask; ; at = (at + 1) & mask) {
      const task = slots[at];
      if (task === undefined) return undefined;
      if (
        task.id3 === id3 &&
        task.id2 === id2 &&
        task.id1 === id1 &&
        task.id0 === id0 &&
        task.tenant === tenant
      )
        return task;
    }
  }

  *values(): Generator<LiveTask> {
    for (const { slots } of this.#shards) for (const task of slots) if (task !== undefined) yield task;
  }

  /**
   * The tasks of one shard; a task never changes its own. Not in the order of their slots: whoever adds them in that order
   * to a shard that grows meanwhile makes all of them collide.
   */
  shard(number: number): LiveTask[] {
    const slots = this.#shards[number]?.slots ?? [];
    const tasks: LiveTask[] = [];
    for (let n = 0; n < slots.length; n += 1) {
      const task = slots[Math.imul(n, ODD) & (slots.length - 1)];
      if (task !== undefined) tasks.push(task);
    }
    return tasks;
  }

  /** One that is not in it. */
  add(task: LiveTask): void {
    this.#shardOf(task).add(task);
    this.#size += 1;
  }

  remove(task: LiveTask): void {
    if (this.#shardOf(task).remove(task)) this.#size -= 1;
  }

  #shardOf(task: LiveTask): Shard {
    return this.#shards[hashOfTask(task) & (SHARDS - 1)] as Shard;
  }
}

/** The shard that a task of this id is in, for ever: snapshots rely on it. */
export function shardOf(id: string): number {
  const [id0, id1, id2, id3] = readId(id);
  return hashOf(id0, id1, id2, id3) & (SHARDS - 1);
}

/** A hash table with open addressing: one word a slot, which is a third of what a Map costs. */
class Shard {
  /** A power of two; a task stands at the first free slot from where its hash says. */
  slots: (LiveTask | undefined)[] = emptySlots(LEAST_SLOTS);
  #size = 0;

  add(task: LiveTask): void {
    if (this.#size + 1 > this.slots.length * FULLEST) this.#grow();
    this.#put(task);
    this.#size += 1;
  }

  /** False when it is not there. */
  remove(task: LiveTask): boolean {
    const { slots } = this;
    const mask = slots.length - 1;
    let hole = placeOf(task, mask);
    for (let found = slots[hole]; found !== task; found = slots[hole]) {
      if (found === undefined) return false;
      hole = (hole + 1) & mask;
    }
    // Whatever comes after and would be searched for across the hole moves into it.
    for (let at = (hole + 1) & mask; ; at = (at + 1) & mask) {
      const next = slots[at];
      if (next === undefined) break;
      if (((at - placeOf(next, mask)) & mask) < ((at - hole) & mask)) continue;
      slots[hole] = next;
      hole = at;
    }
    slots[hole] = undefined;
    this.#size -= 1;
    return true;
  }

  #put(task: LiveTask): void {
    const mask = this.slots.length - 1;
    let at = placeOf(task, mask);
    while (this.slots[at] !== undefined) at = (at + 1) & mask;
    this.slots[at] = task;
  }

  #grow(): void {
    const before = this.slots;
    this.slots = emptySlots(before.length * 2);
    for (const task of before) if (task !== undefined) this.#put(task);
  }
}

const emptySlots = (length: number): (LiveTask | undefined)[] => Array.from({ length });

const hashOfTask = ({ id0, id1, id2, id3 }: LiveTask): number => hashOf(id0, id1, id2, id3);

const placeOf = (task: LiveTask, mask: number): number => (hashOfTask(task) >>> SHARD_BITS) & mask;
