import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { TaskledgerError } from '../../domain/errors.ts';
import { EVENT_KINDS } from '../../domain/events.ts';
import { NameSchema, TaskIdSchema } from '../../domain/names.ts';
import { readableTenant, tenantParameter } from '../auth.ts';
import { EventClient } from '../event-client.ts';
import { LiveFeed } from '../live-feed.ts';
import type { HttpParts } from '../parts.ts';
import { addRoute } from '../route.ts';

const seqText = z.string().regex(/^\d{1,15}$/);
const Query = z.strictObject({
  ...tenantParameter,
  type: NameSchema.optional(),
  task: TaskIdSchema.optional(),
  kind: z
    .union([z.string(), z.array(z.string())])
    .transform((given) => [given].flat().flatMap((text) => text.split(',')))
    .pipe(z.array(z.enum(EVENT_KINDS)))
    .optional()
    .describe('Repeated or comma separated, such as COMPLETED,DEAD_LETTER'),
  after: seqText.optional().describe('Begin after this log sequence; Last-Event-ID wins over it'),
});

/** The live feed over HTTP, read from the log, so that nothing is missed between two connections. */
export function eventRoutes(
  app: FastifyInstance,
  { registry, log, readLog, logger, config }: HttpParts,
): { endAll(): Promise<void> } {
  const bufferBytes = config.httpFeedBufferBytes;
  const feed = new LiveFeed({ log, readLog, logger, bufferBytes });
  const open = new Set<EventClient>();
  let ending = false;

  addRoute(app, {
    method: 'GET',
    url: '/v1/events',
    scope: 'read',
    tag: 'events',
    summary: 'Follow events as they are stored (server-sent events)',
    description:
      'One event a message: `id` is the log sequence, `event` the kind, `data` the event as JSON. Begins now, or after ' +
      '`Last-Event-ID` as far back as the hot window reaches; a message `gap` says that older ones have aged out. ' +
      'A comment comes every 15 s, with the position as `id`. A message `end` says why the stream ends (`slow`: the ' +
      'client took too little; `shutting_down`; `log_unavailable`); the client may come back with its Last-Event-ID.',
    query: Query as unknown as z.ZodType<z.infer<typeof Query>>,
    headers: z.object({ 'last-event-id': z.string().optional() }),
    responses: { 200: z.string().describe('text/event-stream') },
    errors: ['name_invalid', 'tenant_forbidden', 'tenant_unknown', 'rate_limited', 'log_unavailable'],
    async handler({ identity, query: { tenant, after, ...wanted }, request, reply }) {
      const filter = { ...wanted, tenant: readableTenant(identity, tenant, registry.tenants) };
      const since = seqText.optional().safeParse(request.headers['last-event-id'] ?? after);
      if (!since.success)
        throw new TaskledgerError('request_invalid', {
          field: 'last-event-id',
          reason: 'Last-Event-ID is no log sequence',
        });
      if (open.size >= config.httpFeeds) throw new TaskledgerError('rate_limited');
      const { place, gap } = await feed.enter(since.data === undefined ? undefined : Number(since.data));
      if (ending) {
        place.leave();
        throw new TaskledgerError('shutting_down');
      }
      reply.hijack();
      const headers = { 'x-request-id': request.id };
      const client = new EventClient({ raw: reply.raw, filter, place, bufferBytes, headers });
      open.add(client);
      void client.closed.then(() => open.delete(client));
      client.follow(gap);
    },
  });

  return {
    async endAll() {
      ending = true;
      for (const client of open) client.end('shutting_down');
      await feed.whenEnded();
    },
  };
}
