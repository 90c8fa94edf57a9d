import type { Mirror } from '../../src/registry/mirror.ts';

/** A mirror's contract in memory, for tests of what is built on one. */
export function memoryMirror<T>(entries: Readonly<Record<string, T>> = {}): Mirror<T> {
  const values = new Map(Object.entries(entries));
  return {
    name: 'memory mirror',
    start: async () => {},
    stop: async () => {},
    get: (key) => values.get(key),
    read: async (key) => values.get(key),
    revisionOf: (key) => (values.has(key) ? 1 : undefined),
    values: () => [...values.values()],
    entries: () => [...values],
    onChange: () => {},
    put: async (key, value) => void values.set(key, value),
    delete: async (key) => void values.delete(key),
    async change(key, build) {
      const next = build(values.get(key));
      if (next === undefined) values.delete(key);
      else values.set(key, next);
      return next;
    },
  };
}
