import { isUtf8 } from 'node:buffer';
import type { FastifyInstance } from 'fastify';
import { TaskledgerError } from '../domain/errors.ts';

/**
 * Accepts application/json and nothing else. An empty body is `undefined`; what is not UTF-8 JSON is
 * `payload_not_json`. `__proto__` and nesting are the business of the checks behind: JSON.parse makes plain own keys and
 * does not recurse.
 */
export function acceptJsonOnly(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
    try {
      done(null, parseJsonBody(body as Buffer));
    } catch (error) {
      done(error as Error);
    }
  });
}

export function parseJsonBody(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  if (!isUtf8(body)) throw new TaskledgerError('payload_not_json', { reason: 'it is not UTF-8' });
  try {
    return JSON.parse(body.toString('utf8'));
  } catch (cause) {
    throw new TaskledgerError(
      'payload_not_json',
      { reason: (cause as Error).message.replaceAll('\0', '\\u0000') },
      { cause },
    );
  }
}
