import type { Service } from '../platform/service.ts';

/** Makes a pass at once and then every `everyMs` after the end of the one before; `stop` waits for the pass at hand. */
export function passes(name: string, everyMs: number, pass: () => Promise<void>): Service {
  let stopping = false;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  const next = (): void => {
    running = pass().then(() => {
      if (!stopping) timer = setTimeout(next, everyMs);
    });
  };
  return {
    name,
    async start() {
      if (running === undefined && !stopping) next();
    },
    async stop() {
      stopping = true;
      clearTimeout(timer);
      await running;
    },
  };
}
