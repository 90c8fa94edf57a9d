import type { Progress, Reply, Request } from './messages.ts';

type Handlers<Calls> = {
  readonly [K in keyof Calls]: Calls[K] extends (...args: infer A) => infer R
    ? (...args: A) => R | Promise<R>
    : never;
};

/** Answers the bench's requests until it hangs up; a load process never outlives the bench. */
export function serve<Calls>(handlers: Handlers<Calls>): void {
  const answer = async ({ id, call, order }: Request): Promise<void> => {
    const handler = handlers[call as keyof Calls] as (order: unknown) => unknown;
    try {
      send({ id, value: (await handler(order)) ?? null });
    } catch (error) {
      send({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    }
  };
  process.on('message', (request: Request) => void answer(request));
  process.on('disconnect', () => process.exit(0));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {});
}

export const tellProgress = (progress: Progress): void => send(progress);

function send(message: Reply | Progress): void {
  if (process.connected) process.send?.(message);
}
