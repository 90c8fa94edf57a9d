import { randomUUID } from 'node:crypto';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { TaskledgerError } from '../domain/errors.ts';
import type { Logger } from '../observe/log.ts';
import { monotonicClock } from '../platform/clock.ts';
import type { Service } from '../platform/service.ts';
import { authenticate } from './auth.ts';
import { errorBody, toTaskledgerError } from './errors.ts';
import { acceptJsonOnly } from './json-body.ts';
import { taskBodyLimit } from './limits.ts';
import { addOpenApi } from './openapi.ts';
import type { HttpParts } from './parts.ts';
import { createRateLimit } from './rate-limit.ts';
import { cancellationRoutes } from './routes/cancellations.ts';
import { deadLetterRoutes } from './routes/dead-letters.ts';
import { eventRoutes } from './routes/events.ts';
import { publicRoutes } from './routes/health.ts';
import { keyRoutes } from './routes/keys.ts';
import { metricsRoutes } from './routes/metrics.ts';
import { pauseRoutes } from './routes/pauses.ts';
import { projectionRoutes } from './routes/projections.ts';
import { queueRoutes } from './routes/queues.ts';
import { replayRoutes } from './routes/replays.ts';
import { scheduleCommandRoutes } from './routes/schedule-commands.ts';
import { scheduleSlotRoutes } from './routes/schedule-slots.ts';
import { scheduleRoutes } from './routes/schedules.ts';
import { submitRoutes } from './routes/submit.ts';
import { taskCommandRoutes } from './routes/task-commands.ts';
import { taskRoutes } from './routes/tasks.ts';
import { tenantRoutes } from './routes/tenants.ts';
import { typeRoutes } from './routes/types.ts';
import { whyRoutes } from './routes/why.ts';
import { workerRoutes } from './routes/workers.ts';
import { createUnknownRoute } from './unknown-route.ts';
import { answerUnreadable } from './unreadable.ts';

/** How long `stop` waits for requests in flight: longer than any of them may take. */
const STOP_WAIT_MS = 15_000;

export interface HttpServer extends Service {
  /** Where it listens; throws before `start()`. */
  readonly url: string;
  /** For tests: `app.inject` needs no socket. */
  readonly app: FastifyInstance;
}

/**
 * The HTTP API. A request passes: request id -> closing? -> key and scope -> rate limit -> body -> route. `stop()` lets
 * requests in flight finish; those that arrive meanwhile get `shutting_down`.
 */
export async function createHttpServer(parts: HttpParts): Promise<HttpServer> {
  const { config, logger } = parts;
  let closing = false;
  let url: string | undefined;
  let feeds: { endAll(): Promise<void> } | undefined;
  const app = createApp(parts);
  addHooks(app, parts, () => closing);
  app.setNotFoundHandler(createUnknownRoute(app));
  await addOpenApi(app);
  await app.register(async (api) => {
    feeds = addRoutes(api, parts);
  });

  return {
    name: 'http',
    app,
    get url() {
      if (url === undefined) throw new Error('the HTTP server has not started');
      return url;
    },
    async start() {
      url = await app.listen({ host: config.httpHost, port: config.httpPort });
      logger.info({ url }, 'HTTP API listens');
    },
    async stop() {
      closing = true;
      // A feed has no end of its own.
      const feedsEnded = feeds?.endAll();
      // A connection that never sent a request is not idle to Node, and would be waited for for a minute.
      const impatient = setTimeout(() => app.server.closeAllConnections(), STOP_WAIT_MS);
      await app.close().finally(() => clearTimeout(impatient));
      await feedsEnded;
    },
  };
}

/** Without routes: JSON alone goes in, each route checks its own, and every error goes out in one form. */
function createApp({ config, logger }: HttpParts): FastifyInstance {
  const answerError = errorAnswers(logger);
  const app = fastify({
    logger: false,
    genReqId: () => randomUUID(),
    bodyLimit: taskBodyLimit(config),
    // A client that sends its request slower than this is cut off.
    requestTimeout: 30_000,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    clientErrorHandler: answerUnreadable,
    routerOptions: { ignoreTrailingSlash: true },
    frameworkErrors: (error, request, reply) => {
      void answerError(error, request, reply);
    },
  });
  app.setValidatorCompiler(() => (value) => ({ value }));
  app.setSerializerCompiler(() => (value) => JSON.stringify(value));
  acceptJsonOnly(app);
  app.setErrorHandler(answerError);
  return app;
}

/** What every request passes before its route, and every answer after it. */
function addHooks(
  app: FastifyInstance,
  { config, registry, metrics }: HttpParts,
  closing: () => boolean,
): void {
  const limit = rateLimiter(config.httpRatePerSecond);
  app.decorateRequest('identity', undefined);
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
    if (closing()) throw new TaskledgerError('shutting_down');
    const { scope } = request.routeOptions.config;
    if (scope === undefined) return;
    request.identity = authenticate(request, registry.keys, scope);
    limit(request.identity.id, reply);
  });
  app.addHook('onSend', (_request, reply, payload, done) => {
    // A connection that is kept alive would hold up the stop until it times out.
    if (closing()) reply.header('connection', 'close');
    done(null, payload);
  });
  app.addHook('onResponse', async (request, reply) => {
    metrics.request(request.method, request.routeOptions.url ?? 'none', reply.statusCode, reply.elapsedTime);
  });
}

/** Tells the client what is left of its rate, and throws `rate_limited` when nothing is. */
function rateLimiter(ratePerSecond: number): (keyId: string, reply: FastifyReply) => void {
  const rateLimit = createRateLimit({ ratePerSecond, clock: monotonicClock });
  return (keyId, reply) => {
    const verdict = rateLimit(keyId);
    reply.header('ratelimit-limit', verdict.limit).header('ratelimit-remaining', verdict.remaining);
    reply.header('ratelimit-reset', verdict.retryAfterS);
    if (verdict.allowed) return;
    reply.header('retry-after', verdict.retryAfterS);
    throw new TaskledgerError('rate_limited');
  };
}

const errorAnswers =
  (logger: Logger) =>
  (thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const error = toTaskledgerError(thrown, {
      contentType: request.headers['content-type'] ?? '(none)',
      bodyLimit: request.routeOptions.bodyLimit,
    });
    if (error.code === 'internal')
      logger.error(
        { requestId: request.id, method: request.method, url: request.url, err: thrown },
        'request failed',
      );
    if (error.status === 401) reply.header('www-authenticate', 'Bearer');
    if (error.status === 503 && !reply.hasHeader('retry-after')) reply.header('retry-after', 2);
    return reply.code(error.status).send(errorBody(error, request.id));
  };

/** The answer ends the feeds that are open. */
function addRoutes(api: FastifyInstance, parts: HttpParts): { endAll(): Promise<void> } {
  publicRoutes(api, parts);
  metricsRoutes(api, parts);
  submitRoutes(api, parts);
  taskRoutes(api, parts);
  taskCommandRoutes(api, parts);
  deadLetterRoutes(api, parts);
  replayRoutes(api, parts);
  queueRoutes(api, parts);
  pauseRoutes(api, parts);
  whyRoutes(api, parts);
  workerRoutes(api, parts);
  const feeds = eventRoutes(api, parts);
  cancellationRoutes(api, parts);
  typeRoutes(api, parts);
  projectionRoutes(api, parts);
  scheduleRoutes(api, parts);
  scheduleCommandRoutes(api, parts);
  scheduleSlotRoutes(api, parts);
  tenantRoutes(api, parts);
  keyRoutes(api, parts);
  return feeds;
}
