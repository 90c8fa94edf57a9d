export type SourceName = 'NATS_SERVER_BIN' | 'PATH' | 'cache' | 'release archive' | 'Debian package';

/** A place to get a nats-server from. Returns it, or why it has none. */
export interface NatsSource {
  readonly name: SourceName;
  find(): Promise<{ readonly bin: string; readonly version: string } | { readonly declined: string }>;
}
