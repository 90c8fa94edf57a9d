/** How long an answer is waited for before the question is put once more. */
const EVERY_MS = 1_000;

/**
 * What JetStream answers to a question that may be put more than once: the first answer or failure counts. It is put
 * again every second, because a request that reaches servers in an election is dropped without a word, and one that
 * reaches them a moment later is answered at once. How long is waited in all is for the question itself to say.
 */
export function askAgain<T>(ask: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = (finish: () => void): void => {
      clearInterval(timer);
      finish();
    };
    const once = (): void => {
      ask().then(
        (answer) => end(() => resolve(answer)),
        (error: unknown) => end(() => reject(error)),
      );
    };
    const timer = setInterval(once, EVERY_MS);
    once();
  });
}
