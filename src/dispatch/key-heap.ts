/**
 * A binary heap of items by a numeric key, smallest first; equal keys come out in the order they went in only by chance.
 *
 * Removal is lazy: an item that is no longer wanted stays until it reaches the top or `retain` drops it. The owner knows
 * from the item itself whether an entry still counts.
 */
export class KeyHeap<T> {
  readonly #keys: number[] = [];
  readonly #items: T[] = [];

  get length(): number {
    return this.#items.length;
  }

  /** Key of the top; Infinity when empty. */
  topKey(): number {
    return this.#keys[0] ?? Number.POSITIVE_INFINITY;
  }

  top(): T | undefined {
    return this.#items[0];
  }

  push(key: number, item: T): void {
    this.#keys.push(key);
    this.#items.push(item);
    this.#up(this.#items.length - 1);
  }

  pop(): T | undefined {
    const top = this.#items[0];
    const lastKey = this.#keys.pop();
    const lastItem = this.#items.pop();
    if (this.#items.length > 0) {
      this.#keys[0] = lastKey as number;
      this.#items[0] = lastItem as T;
      this.#down(0);
    }
    return top;
  }

  /** In no order. */
  forEach(see: (item: T) => void): void {
    for (const item of this.#items) see(item);
  }

  /** Drops every entry that `keep` refuses, in O(n). */
  retain(keep: (item: T, key: number) => boolean): void {
    let kept = 0;
    for (let i = 0; i < this.#items.length; i++) {
      const item = this.#items[i] as T;
      const key = this.#keys[i] as number;
      if (!keep(item, key)) continue;
      this.#items[kept] = item;
      this.#keys[kept] = key;
      kept += 1;
    }
    this.#items.length = kept;
    this.#keys.length = kept;
    for (let i = (kept >> 1) - 1; i >= 0; i--) this.#down(i);
  }

  #up(start: number): void {
    const keys = this.#keys;
    const items = this.#items;
    const key = keys[start] as number;
    const item = items[start] as T;
    let at = start;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const parentKey = keys[parent] as number;
      if (parentKey <= key) break;
      keys[at] = parentKey;
      items[at] = items[parent] as T;
      at = parent;
    }
    keys[at] = key;
    items[at] = item;
  }

  #down(start: number): void {
    const keys = this.#keys;
    const items = this.#items;
    const size = items.length;
    const key = keys[start] as number;
    const item = items[start] as T;
    let at = start;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= size) break;
      if (child + 1 < size && (keys[child + 1] as number) < (keys[child] as number)) child += 1;
      const childKey = keys[child] as number;
      if (childKey >= key) break;
      keys[at] = childKey;
      items[at] = items[child] as T;
      at = child;
    }
    keys[at] = key;
    items[at] = item;
  }
}
