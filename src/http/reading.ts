import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import type { ErrorCode } from '../domain/errors.ts';
import type { Answer, Query } from '../query/query.ts';

/** Any read of a tenant's rows can answer with these. */
export const READ_ERRORS = [
  'tenant_forbidden',
  'tenant_unknown',
  'read_model_unavailable',
  'position_not_reached',
] as const satisfies readonly ErrorCode[];

/** How long a read waits for the position that it asked for. */
const WAIT_MS = 5_000;

/** Of every read: `?wait=<seq>` answers only once the read models reflect that sequence. */
export const waitParameter = {
  wait: z.coerce
    .number()
    .int()
    .min(0)
    .optional()
    .describe('Answer only once the read models reflect this log sequence; waits 5 s at most'),
};

export const pageParameters = (most: number, usual: number) => ({
  limit: z.coerce.number().int().min(1).max(most).default(usual),
  cursor: z.string().min(1).max(500).optional(),
});

/** Waits for the wanted position, reads, and says which position the answer reflects. */
export async function read<T>(
  query: Query,
  reply: FastifyReply,
  wait: number | undefined,
  ask: () => Promise<Answer<T>>,
): Promise<Answer<T>> {
  if (wait !== undefined) await query.waitFor(wait, WAIT_MS);
  const answer = await ask();
  reply.header('taskledger-position', answer.position);
  return answer;
}
