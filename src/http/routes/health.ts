import type { FastifyInstance } from 'fastify';
import { catalogue, type ErrorCode, TaskledgerError } from '../../domain/errors.ts';
import type { HttpParts } from '../parts.ts';

/** Routes that need no key: probes, and what an error code means. */
export function publicRoutes(app: FastifyInstance, { health }: HttpParts): void {
  app.get<{ Querystring: { deep?: string } }>(
    '/healthz',
    {
      schema: {
        tags: ['health'],
        summary:
          'The process answers; with `?deep`, 503 when work that could be done is not or events are not safe, and why',
      },
    },
    async ({ query: { deep } }, reply) => {
      if (deep === undefined) return { status: 'ok' };
      const report = await health.check();
      const { flow, streams } = report.checks;
      const well = report.ready && flow?.ok !== false && streams?.ok !== false;
      return reply.code(well ? 200 : 503).send(report);
    },
  );

  app.get(
    '/readyz',
    { schema: { tags: ['health'], summary: 'The process can accept tasks; 503 when it cannot' } },
    async (_request, reply) => {
      const report = await health.check();
      return reply.code(report.ready ? 200 : 503).send(report);
    },
  );

  app.get<{ Params: { code: string } }>(
    '/errors/:code',
    { schema: { tags: ['health'], summary: 'What an error code means and what to do' } },
    async ({ params: { code }, method, url }) => {
      if (!Object.hasOwn(catalogue, code))
        throw new TaskledgerError('route_not_found', { method, path: url });
      return { code, ...catalogue[code as ErrorCode] };
    },
  );
}
