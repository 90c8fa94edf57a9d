/** A process of the stand, as the nemesis sees it. Every method may be called in any state. */
export interface Victim {
  readonly name: string;
  /** SIGKILL; it stays down until `start`. */
  kill(): Promise<void>;
  /** An orderly stop; it stays down until `start`. */
  stop(): Promise<void>;
  /** Starts it if it is down. */
  start(): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;
}

/** A process that ended: by the nemesis, or by itself. */
export interface Death {
  readonly at: number;
  readonly name: string;
  readonly by: 'nemesis' | 'itself';
  readonly how: string;
}
