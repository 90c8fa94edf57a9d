import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Service } from '../platform/service.ts';
import type { Logger } from './log.ts';

interface HealthListenerParts {
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  /** `ready`: the process does what it is for. */
  check(): Promise<{ readonly ready: boolean }>;
  metrics(): Promise<string>;
  readonly logger: Logger;
}

const JSON_TYPE = 'application/json; charset=utf-8';
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Health and metrics of a process that has no API: `/healthz`, `/readyz` and `/metrics`, without a key. */
export function createHealthListener(parts: HealthListenerParts): Service & { port(): number } {
  let server: Server | undefined;
  return {
    name: 'health listener',
    port: () => (server?.address() as AddressInfo | null)?.port ?? 0,
    async start() {
      if (server !== undefined) return;
      const made = createServer((request, response) => {
        answer(parts, request.url ?? '/', response).catch((error: unknown) => {
          parts.logger.warn({ err: error }, 'health could not be told');
          response.writeHead(500).end();
        });
      });
      await new Promise<void>((resolve, reject) => {
        made.once('error', reject);
        made.listen(parts.port, parts.host, resolve);
      });
      server = made;
      parts.logger.info({ port: (made.address() as AddressInfo).port }, 'health and metrics are served');
    },
    async stop() {
      const open = server;
      server = undefined;
      if (open === undefined) return;
      open.closeAllConnections();
      await new Promise<void>((resolve) => open.close(() => resolve()));
    },
  };
}

async function answer(parts: HealthListenerParts, url: string, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(url, 'http://health');
  if (pathname === '/metrics') {
    const text = await parts.metrics();
    response.writeHead(200, { 'content-type': METRICS_TYPE }).end(text);
  } else if (pathname === '/readyz' || (pathname === '/healthz' && searchParams.has('deep'))) {
    const report = await parts.check();
    response.writeHead(report.ready ? 200 : 503, { 'content-type': JSON_TYPE }).end(JSON.stringify(report));
  } else if (pathname === '/healthz') {
    response.writeHead(200, { 'content-type': JSON_TYPE }).end('{"status":"ok"}');
  } else response.writeHead(404).end();
}
