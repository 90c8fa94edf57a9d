/** A promise and what resolves it. */
export interface Gate<T = void> {
  readonly opened: Promise<T>;
  readonly open: (value: T) => void;
}

export function gate<T = void>(): Gate<T> {
  let open: (value: T) => void = () => {};
  const opened = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** A handler that opens the gate when it starts, and neither ends nor hears its signal. */
export const endless = (started: { open(): void }) => (): Promise<never> => {
  started.open();
  return new Promise(() => {});
};
