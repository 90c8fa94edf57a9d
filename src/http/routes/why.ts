import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { TaskledgerError } from '../../domain/errors.ts';
import { TaskIdSchema } from '../../domain/names.ts';
import { stateOf } from '../../log/open.ts';
import { tenantParameter, writableTenant } from '../auth.ts';
import type { HttpParts } from '../parts.ts';
import { addRoute } from '../route.ts';
import { FactSchema, why } from '../why.ts';

export function whyRoutes(
  app: FastifyInstance,
  { registry, query, log, workers, explain, clock }: HttpParts,
): void {
  addRoute(app, {
    method: 'GET',
    url: '/v1/tasks/:id/why',
    scope: 'read',
    tag: 'tasks',
    summary: 'Say in one sentence why a task is not running, with the facts',
    description:
      'From the log, the leading dispatcher and the registry of workers, as they are now. A dispatcher that does not answer in 500 ms is itself a reason.',
    params: z.strictObject({ id: TaskIdSchema }),
    query: z.strictObject(tenantParameter),
    responses: { 200: z.object({ sentence: z.string(), facts: z.array(FactSchema) }) },
    errors: ['name_invalid', 'tenant_forbidden', 'tenant_unknown', 'task_not_found', 'log_unavailable'],
    async handler({ identity, params: { id }, query: { tenant: wanted } }) {
      const tenant = writableTenant(identity, wanted, registry.tenants);
      const history = await log.readTask(tenant, id);
      const state = stateOf(history);
      const last = history.at(-1);
      if (state === undefined || last === undefined) return forgotten(tenant, id);
      const [dispatcher, registered] = await Promise.all([
        explain(tenant, id),
        workers.list().catch(() => undefined),
      ]);
      return why({ state, last, dispatcher, workers: registered, now: clock.now() });
    },
  });

  /** What the hot window has forgotten has ended; the read model may still know how. */
  async function forgotten(tenant: string, taskId: string) {
    const { value } = await query.task(tenant, taskId);
    if (value === undefined) throw new TaskledgerError('task_not_found', { taskId });
    const { status, finishedAt } = value;
    return {
      sentence: `Task has ended: ${status}${finishedAt === null ? '' : ` since ${finishedAt}`}.`,
      facts: [{ kind: 'ended', status, at: finishedAt }],
    };
  }
}
