import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { TaskledgerError } from '../domain/errors.ts';

/**
 * Answers a request that no route takes: `method_not_allowed` with `Allow` when another method would be taken, else
 * `route_not_found`. Must be made before the routes, which it watches being added.
 */
export function createUnknownRoute(
  app: FastifyInstance,
): (request: FastifyRequest, reply: FastifyReply) => never {
  const methodsByUrl = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    if (url.includes('*')) return;
    const methods = methodsByUrl.get(url) ?? new Set();
    for (const one of [method].flat()) methods.add(one);
    methodsByUrl.set(url, methods);
  });
  return (request, reply) => {
    const path = pathOf(request.url);
    const allowed = [...methodsByUrl].flatMap(([url, methods]) => (matches(url, path) ? [...methods] : []));
    if (allowed.length === 0) throw new TaskledgerError('route_not_found', { method: request.method, path });
    reply.header('allow', [...new Set(allowed)].join(', '));
    throw new TaskledgerError('method_not_allowed', { method: request.method, path });
  };
}

const pathOf = (url: string): string => (url.split('?', 1)[0] ?? '').slice(0, 200);

function matches(pattern: string, path: string): boolean {
  const expected = pattern.split('/');
  const actual = path.split('/');
  return (
    expected.length === actual.length &&
    expected.every((part, index) => part.startsWith(':') || part === actual[index])
  );
}
