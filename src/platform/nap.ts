/**
 * Sleep of one loop, its owner, until the time is over or somebody wakes it. A `wake` while nobody sleeps is not
 * remembered: the owner looks whether there is a reason to stay awake, and takes its nap without an await between.
 */
export class Nap {
  #end: (() => void) | undefined;

  /** `ms`: no time ends it when it is absent. */
  take(ms?: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#end = undefined;
        resolve();
      };
      const timer = ms === undefined ? undefined : setTimeout(end, ms);
      this.#end = end;
    });
  }

  wake(): void {
    this.#end?.();
  }
}
