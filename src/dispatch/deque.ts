/** Below this many consumed slots the array is not shifted down: copying small arrays costs more than it frees. */
const COMPACT_FROM = 1_024;

/** First in, first out, in O(1) amortised: the head is an index, and the consumed part is cut off when it is the larger half. */
export class Deque<T> {
  #items: T[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  last(): T | undefined {
    return this.length === 0 ? undefined : this.#items[this.#items.length - 1];
  }

  shift(): T | undefined {
    if (this.#head >= this.#items.length) return undefined;
    const item = this.#items[this.#head];
    // Keep no reference to what has left.
    this.#items[this.#head] = undefined as T;
    this.#head += 1;
    if (this.#head === this.#items.length) {
      this.#items = [];
      this.#head = 0;
    } else if (this.#head >= COMPACT_FROM && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  clear(): void {
    this.#items = [];
    this.#head = 0;
  }

  forEach(see: (item: T) => void): void {
    for (let at = this.#head; at < this.#items.length; at += 1) see(this.#items[at] as T);
  }

  /** Drops every item that `keep` refuses, in O(n). */
  retain(keep: (item: T) => boolean): void {
    this.#items = this.#items.slice(this.#head).filter(keep);
    this.#head = 0;
  }
}
