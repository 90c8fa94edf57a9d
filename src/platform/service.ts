import { Patience } from './patience.ts';

/**
 * Everything that lives long is a Service. `start` resolves when it works; `stop` resolves when nothing of it is left.
 * Stopping twice is fine, and so is stopping before start. A start that fails may leave something behind for `stop`.
 */
export interface Service {
  readonly name: string;
  /** `patience`: how long it may wait for its servers, and what ends the waiting. One of its own when it is given none. */
  start(patience?: Patience): Promise<void>;
  stop(): Promise<void>;
  /** What is being stopped at the moment, of a service that consists of several. */
  heldUpBy?(): string | undefined;
}

/**
 * Starts in order, with one patience for all, and stops in reverse. When one fails to start, or the patience is told to
 * stop, those that were begun are stopped and the error is thrown.
 */
export function serviceGroup(name: string, services: readonly Service[]): Service {
  const running: Service[] = [];
  let ending: Service | undefined;
  const stop = async (): Promise<void> => {
    const failures: unknown[] = [];
    for (let service = running.pop(); service !== undefined; service = running.pop()) {
      ending = service;
      await service.stop().catch((error: unknown) => failures.push(error));
    }
    ending = undefined;
    if (failures.length > 0) throw new AggregateError(failures, `${name} did not stop cleanly`);
  };
  return {
    name,
    stop,
    heldUpBy: () => ending?.heldUpBy?.() ?? ending?.name,
    async start(patience = new Patience()) {
      for (const service of services) {
        try {
          patience.throwIfStopped();
          running.push(service);
          await service.start(patience);
        } catch (error) {
          await stop().catch(() => undefined);
          throw error;
        }
      }
    },
  };
}
