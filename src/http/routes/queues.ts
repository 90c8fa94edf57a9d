import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { Status } from '../../domain/events.ts';
import { NameSchema } from '../../domain/names.ts';
import type { QueueView } from '../../query/query.ts';
import { readableTenant, tenantParameter } from '../auth.ts';
import { intakeOf } from '../intake-view.ts';
import type { HttpParts } from '../parts.ts';
import { pausesInSight, pausesOf, pauseView } from '../pauses.ts';
import { atParameter, pointOf } from '../point-in-log.ts';
import { read, waitParameter } from '../reading.ts';
import { addRoute } from '../route.ts';
import { QueueListSchema } from '../schemas.ts';

type Counts = Partial<Record<Status, number>>;

interface Queue {
  readonly tenant: string;
  readonly type: string;
  readonly counts: Counts;
  readonly priorities: { readonly priority: number; readonly counts: QueueView['counts'] }[];
}

export function queueRoutes(
  app: FastifyInstance,
  { query, registry, backlog, rates, unserved, config, clock }: HttpParts,
): void {
  addRoute(app, {
    method: 'GET',
    url: '/v1/queues',
    scope: 'read',
    tag: 'queues',
    summary: 'Count tasks by tenant, type, priority and status',
    query: z.strictObject({
      ...tenantParameter,
      type: NameSchema.optional(),
      ...waitParameter,
      ...atParameter,
    }),
    responses: { 200: QueueListSchema },
    errors: [
      'name_invalid',
      'tenant_forbidden',
      'tenant_unknown',
      'read_model_unavailable',
      'position_not_reached',
      'point_not_kept',
      'point_too_far',
      'run_at_invalid',
    ],
    async handler({ identity, query: { tenant, type, wait, at }, reply }) {
      const of = readableTenant(identity, tenant, registry.tenants);
      const pauses = pausesInSight(registry, of, clock.now());
      const { position, value } = await read(query, reply, wait, () =>
        at === undefined
          ? query.queues({ tenant: of, type })
          : query.queuesAt({ tenant: of, type }, pointOf('at', at)),
      );
      const queues = aggregate(value).map((queue) => ({
        ...queue,
        pauses: pausesOf(pauses, queue).map(pauseView),
        noWorkers: unserved.versionsOf(queue.type),
        backlog: backlogOf(queue.type),
        intake: intakeOf(queue, {
          type: backlog.full(queue.type),
          tenant: backlog.fullTenant(queue.tenant),
          rates: rates.closed(queue.tenant, queue.type),
        }),
      }));
      return { position, queues };
    },
  });

  const backlogOf = (type: string) => ({
    waiting: backlog.waiting(type) ?? null,
    limit: registry.types.get(type)?.maxBacklog ?? config.maxBacklog,
    full: backlog.full(type) !== undefined,
    delayed: {
      waiting: backlog.delayed(type) ?? null,
      limit: config.maxDelayed,
      full: backlog.fullDelayed(type) !== undefined,
    },
  });
}

/** One queue a tenant and type, its counts summed over the priorities. */
export function aggregate(rows: readonly QueueView[]): Queue[] {
  const queues = new Map<string, Queue>();
  for (const { tenant, type, priority, counts } of rows) {
    const key = `${tenant}.${type}`;
    const queue = queues.get(key) ?? { tenant, type, counts: {}, priorities: [] };
    queues.set(key, queue);
    queue.priorities.push({ priority, counts });
    for (const [status, count] of Object.entries(counts) as [Status, number][])
      queue.counts[status] = (queue.counts[status] ?? 0) + count;
  }
  for (const { priorities } of queues.values()) priorities.sort((a, b) => a.priority - b.priority);
  return [...queues.values()];
}
