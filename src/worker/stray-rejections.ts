type Listener = (reason: unknown) => void;

const listeners = new Set<Listener>();
const hear = (reason: unknown): void => {
  for (const listener of listeners) listener(reason);
};

/**
 * Hears rejections that nobody handles while at least one worker runs, instead of Node ending the process: a promise
 * that one handler forgot must not lose the attempts of all others. Which handler it was cannot be told. Returns the
 * function that stops hearing.
 */
export function hearStrayRejections(listener: Listener): () => void {
  // One entry a call, even for the same function twice.
  const entry: Listener = (reason) => listener(reason);
  if (listeners.size === 0) process.on('unhandledRejection', hear);
  listeners.add(entry);
  return () => {
    listeners.delete(entry);
    if (listeners.size === 0) process.off('unhandledRejection', hear);
  };
}
