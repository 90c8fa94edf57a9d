/**
 * Everything that lives long is a Service. `start` resolves when it works; `stop` resolves when nothing of it is left.
 * Stopping twice is fine, and so is stopping before start.
 */
export interface Service {
  readonly name: string;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** What is being stopped at the moment, of a service that consists of several. */
  heldUpBy?(): string | undefined;
}

/** Starts in order and stops in reverse. When one fails to start, those before it are stopped and the error is thrown. */
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
    async start() {
      for (const service of services) {
        running.push(service);
        try {
          await service.start();
        } catch (error) {
          await stop().catch(() => undefined);
          throw error;
        }
      }
    },
  };
}
