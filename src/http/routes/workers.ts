import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { NameSchema } from '../../domain/names.ts';
import { seemsAlive } from '../../registry/workers.ts';
import { isOperator } from '../auth.ts';
import type { HttpParts } from '../parts.ts';
import { addRoute } from '../route.ts';

const WorkerSchema = z.object({
  id: z.string(),
  types: z.array(NameSchema),
  slots: z.int().describe('Attempts it runs at once'),
  running: z.int(),
  tasks: z.array(z.string()).describe('Running tasks that the key may see, as <tenant>/<id>'),
  alive: z.boolean().describe('False: it has been silent for longer than it should'),
  degraded: z.string().nullable().describe('Why it takes no work at present'),
  startedAt: z.iso.datetime(),
  seenAt: z.iso.datetime(),
  version: z.string().describe('Of the worker SDK'),
  workerVersion: z.string().nullable().describe('Release of the code that it runs, when it says so'),
  host: z.string().nullable().describe("For operators' keys"),
  pid: z.int().nullable(),
});

export function workerRoutes(app: FastifyInstance, { workers, clock }: HttpParts): void {
  addRoute(app, {
    method: 'GET',
    url: '/v1/workers',
    scope: 'read',
    tag: 'workers',
    summary: 'List the registered workers: what they take, what they run, when they were last heard of',
    query: z.strictObject({ type: NameSchema.optional() }),
    responses: { 200: z.object({ workers: z.array(WorkerSchema) }) },
    errors: ['name_invalid', 'log_unavailable'],
    async handler({ identity, query: { type } }) {
      const operator = isOperator(identity);
      const found = await workers.list();
      return {
        workers: found
          .filter(({ types }) => type === undefined || types.includes(type))
          .map((worker) => ({
            id: worker.id,
            types: worker.types,
            slots: worker.concurrency,
            running: worker.active.length,
            tasks: worker.active
              .map(({ task }) => task)
              .filter((task) => operator || task.startsWith(`${identity.tenant}/`)),
            alive: seemsAlive(worker, clock.now()),
            degraded: worker.degraded ?? null,
            startedAt: new Date(worker.startedAt).toISOString(),
            seenAt: new Date(worker.seenAt).toISOString(),
            version: worker.version,
            workerVersion: worker.workerVersion ?? null,
            host: operator ? worker.host : null,
            pid: operator ? worker.pid : null,
          })),
      };
    },
  });
}
