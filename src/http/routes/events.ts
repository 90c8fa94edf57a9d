import type { ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { TaskledgerError } from '../../domain/errors.ts';
import { EVENT_KINDS, type Recorded } from '../../domain/events.ts';
import { NameSchema, TaskIdSchema } from '../../domain/names.ts';
import { readableTenant } from '../auth.ts';
import { eventMatches, eventText } from '../event-feed.ts';
import type { HttpParts } from '../parts.ts';
import { addRoute } from '../route.ts';

const HEARTBEAT_MS = 15_000;
/** A client that takes nothing for so long is dropped; it may come back with its Last-Event-ID. */
const SLOW_MS = 10_000;
const MAX_BATCH = 500;
/** Each stream reads the log by itself. */
const MAX_STREAMS = 100;

const seqText = z.string().regex(/^\d{1,15}$/);
const Query = z.strictObject({
  tenant: NameSchema.optional().describe("For operators' keys"),
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
  { registry, log, readLog, logger }: HttpParts,
): { endAll(): void } {
  const open = new Set<() => void>();

  addRoute(app, {
    method: 'GET',
    url: '/v1/events',
    scope: 'read',
    tag: 'events',
    summary: 'Follow events as they are stored (server-sent events)',
    description:
      'One event a message: `id` is the log sequence, `event` the kind, `data` the event as JSON. Begins now, or after ' +
      '`Last-Event-ID` as far back as the hot window reaches; a message `gap` says that older ones have aged out. ' +
      'A comment comes every 15 s; a client that takes nothing for 10 s is dropped.',
    query: Query as unknown as z.ZodType<z.infer<typeof Query>>,
    headers: z.object({ 'last-event-id': z.string().optional() }),
    responses: { 200: z.string().describe('text/event-stream') },
    errors: ['name_invalid', 'tenant_forbidden', 'tenant_unknown', 'log_unavailable'],
    async handler({ identity, query: { tenant, after, ...wanted }, request, reply }) {
      const filter = { ...wanted, tenant: readableTenant(identity, tenant, registry.tenants) };
      const since = seqText.optional().safeParse(request.headers['last-event-id'] ?? after);
      if (!since.success)
        throw new TaskledgerError('request_invalid', {
          field: 'last-event-id',
          reason: 'Last-Event-ID is no log sequence',
        });
      if (open.size >= MAX_STREAMS) throw new TaskledgerError('rate_limited');
      const { firstSeq, lastSeq } = await log.bounds();
      const fromSeq = since.data === undefined ? lastSeq + 1 : Number(since.data) + 1;

      reply.hijack();
      const { raw } = reply;
      const stopped = new AbortController();
      const reader = readLog({
        fromSeq: Math.max(1, fromSeq),
        maxBatch: MAX_BATCH,
        gatherMs: 0,
        onBatch: async ({ events }) => {
          if (stopped.signal.aborted) return;
          const text = events
            .filter(({ event }) => eventMatches(event, filter))
            .map(messageOf)
            .join('');
          if (text !== '' && !(await send(raw, text, stopped.signal))) end();
        },
      });
      const heartbeat = setInterval(() => raw.write(': still here\n\n'), HEARTBEAT_MS);
      const end = (): void => {
        if (stopped.signal.aborted) return;
        stopped.abort();
        open.delete(end);
        clearInterval(heartbeat);
        raw.destroy();
        void reader.stop().catch((error: unknown) => logger.warn({ error: String(error) }, 'a feed ended'));
      };
      open.add(end);
      raw.on('close', end);
      raw.writeHead(200, {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store',
        'x-accel-buffering': 'no',
        'x-request-id': request.id,
      });
      raw.write(': following\n\n');
      if (fromSeq < firstSeq)
        raw.write(`event: gap\ndata: ${JSON.stringify({ from: fromSeq, to: firstSeq - 1 })}\n\n`);
      await reader.start().catch(end);
    },
  });

  return {
    endAll() {
      for (const end of open) end();
    },
  };
}

const messageOf = (recorded: Recorded): string =>
  `id: ${recorded.seq}\nevent: ${recorded.event.kind}\ndata: ${eventText(recorded)}\n\n`;

/** Resolves when the client has room again; false when it took nothing for SLOW_MS. */
function send(raw: ServerResponse, text: string, signal: AbortSignal): Promise<boolean> {
  if (raw.write(text)) return Promise.resolve(true);
  return new Promise((resolve) => {
    const done = (taken: boolean): void => {
      clearTimeout(timer);
      raw.off('drain', drained);
      signal.removeEventListener('abort', aborted);
      resolve(taken);
    };
    const drained = (): void => done(true);
    const aborted = (): void => done(false);
    const timer = setTimeout(() => done(false), SLOW_MS);
    raw.on('drain', drained);
    signal.addEventListener('abort', aborted);
  });
}
