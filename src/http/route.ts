import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { catalogue, type ErrorCode } from '../domain/errors.ts';
import type { KeyIdentity, Scope } from '../registry/keys.ts';
import { parameterError } from './errors.ts';
import { ErrorSchema } from './schemas.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The scope that the route asks of a key. */
    scope?: Scope;
  }
  interface FastifyRequest {
    identity: KeyIdentity | undefined;
  }
}

export interface RouteInput<P, Q> {
  readonly identity: KeyIdentity;
  readonly params: P;
  readonly query: Q;
  readonly body: unknown;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** A route behind an API key. The schemas are what the OpenAPI document shows; path and query are checked against theirs. */
export interface Route<P, Q> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly url: string;
  readonly scope: Scope;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly params?: z.ZodType<P>;
  readonly query?: z.ZodType<Q>;
  /** Shown, not checked: the handler checks the body. */
  readonly body?: z.ZodType;
  readonly headers?: z.ZodType;
  readonly responses: Readonly<Record<number, z.ZodType>>;
  readonly errors: readonly ErrorCode[];
  readonly bodyLimit?: number;
  handler(input: RouteInput<P, Q>): Promise<unknown>;
}

const Nothing = z.strictObject({});
/** Any route that has a key can answer with these. */
const EVERYWHERE = [
  'request_invalid',
  'key_missing',
  'key_invalid',
  'scope_missing',
  'rate_limited',
  'internal',
] as const satisfies readonly ErrorCode[];

/** Adds a route to the server and to the OpenAPI document; `EVERYWHERE` joins its errors. */
export function addRoute<P = Record<string, never>, Q = Record<string, never>>(
  app: FastifyInstance,
  route: Route<P, Q>,
): void {
  const params = route.params ?? (Nothing as unknown as z.ZodType<P>);
  const query = route.query ?? (Nothing as unknown as z.ZodType<Q>);
  app.route({
    method: route.method,
    url: route.url,
    config: { scope: route.scope },
    ...(route.bodyLimit === undefined ? {} : { bodyLimit: route.bodyLimit }),
    schema: {
      tags: [route.tag],
      summary: route.summary,
      ...(route.description === undefined ? {} : { description: route.description }),
      security: [{ apiKey: [] }],
      ...(route.params === undefined ? {} : { params: route.params }),
      ...(route.query === undefined ? {} : { querystring: route.query }),
      ...(route.headers === undefined ? {} : { headers: route.headers }),
      ...(route.body === undefined ? {} : { body: route.body }),
      response: { ...errorResponses([...EVERYWHERE, ...route.errors]), ...route.responses },
    },
    handler: async (request, reply) => {
      const { identity } = request;
      // The hook that authenticates runs before every route that has a scope.
      if (identity === undefined) throw new Error('route reached without an identity');
      return route.handler({
        identity,
        params: parse(params, request.params),
        query: parse(query, request.query),
        body: request.body,
        request,
        reply,
      });
    },
  });
}

/** Throws `request_invalid`, or `name_invalid` for a tenant or a type, with the field at fault. */
export function parse<T>(schema: z.ZodType<T>, input: unknown): T {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  throw parameterError(parsed.error, (input ?? {}) as Record<string, unknown>);
}

/** One entry a status, which lists the codes it can carry. */
function errorResponses(codes: readonly ErrorCode[]): Record<number, z.ZodType> {
  const byStatus = new Map<number, Set<ErrorCode>>();
  for (const code of codes) {
    const { status } = catalogue[code];
    byStatus.set(status, (byStatus.get(status) ?? new Set()).add(code));
  }
  return Object.fromEntries(
    [...byStatus].map(([status, found]) => [status, ErrorSchema.describe([...found].join(', '))]),
  );
}
