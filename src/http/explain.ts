import type { NatsConnection } from '@nats-io/transport-node';
import { z } from 'zod';
import { type Fact, FactSchema } from './why.ts';

/** How long the leading dispatcher has to answer. */
const PATIENCE_MS = 500;
const AnswerSchema = z.object({ facts: z.array(FactSchema) });

/** Asks the leading dispatcher why a task is not running. Undefined when none answers in time. */
export const askDispatcher =
  (nc: NatsConnection, subject: string) =>
  async (tenant: string, taskId: string): Promise<readonly Fact[] | undefined> => {
    try {
      const answer = await nc.request(subject, JSON.stringify({ tenant, taskId }), { timeout: PATIENCE_MS });
      return AnswerSchema.parse(answer.json()).facts;
    } catch {
      return undefined;
    }
  };
