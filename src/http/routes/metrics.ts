import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { HttpParts } from '../parts.ts';
import { addRoute } from '../route.ts';

export function metricsRoutes(app: FastifyInstance, { metrics }: HttpParts): void {
  addRoute(app, {
    method: 'GET',
    url: '/metrics',
    scope: 'read',
    tag: 'health',
    summary: 'Prometheus metrics of this process; they name no tenant',
    responses: { 200: z.string() },
    errors: [],
    handler: async ({ reply }) => reply.type(metrics.contentType).send(await metrics.text()),
  });
}
