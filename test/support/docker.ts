import { request } from 'node:http';
import { homedir } from 'node:os';
import { join } from 'node:path';

const PING_TIMEOUT_MS = 2_000;

/** Whether a Docker engine answers: at DOCKER_HOST, else at one of the usual sockets. */
export async function dockerAnswers(): Promise<boolean> {
  const { DOCKER_HOST } = process.env;
  const places = DOCKER_HOST
    ? [DOCKER_HOST]
    : ['/var/run/docker.sock', join(homedir(), '.docker', 'run', 'docker.sock')].map(
        (path) => `unix://${path}`,
      );
  for (const place of places) {
    if (await pings(new URL(place))) return true;
  }
  return false;
}

function pings(place: URL): Promise<boolean> {
  const target =
    place.protocol === 'unix:'
      ? { socketPath: place.pathname }
      : { host: place.hostname, port: place.port || 2375 };
  return new Promise((resolve) => {
    const ping = request({ ...target, path: '/_ping', timeout: PING_TIMEOUT_MS }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    ping.once('timeout', () => ping.destroy());
    ping.once('error', () => resolve(false));
    ping.end();
  });
}
