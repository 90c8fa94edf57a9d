import { watch } from 'node:fs';
import { join } from 'node:path';
import type { Started } from './session.ts';

/** Editors write a file in several steps. */
const SETTLE_MS = 200;

/** Calls `onChange`, one call at a time, after sources below these folders have changed; tests do not count. */
export function watchSources(
  root: string,
  folders: readonly string[],
  onChange: () => Promise<void>,
): Started {
  let timer: NodeJS.Timeout | undefined;
  let calls = Promise.resolve();
  const watchers = folders.map((folder) =>
    watch(join(root, folder), { recursive: true }, (_event, file) => {
      if (file === null || !/\.(ts|sql)$/.test(file) || file.endsWith('.test.ts')) return;
      clearTimeout(timer);
      timer = setTimeout(() => {
        calls = calls.then(onChange);
      }, SETTLE_MS);
    }),
  );
  return {
    stop: async () => {
      clearTimeout(timer);
      for (const watcher of watchers) watcher.close();
      await calls;
    },
  };
}
