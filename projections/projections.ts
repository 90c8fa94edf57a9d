import type { Config } from '../src/platform/config.ts';
import { auditProjection } from './audit/projection.ts';
import { deadLettersProjection } from './dead_letters/projection.ts';
import type { ReadModel } from './engine/projection.ts';
import { queuesProjection } from './queues/projection.ts';
import { tasksProjection } from './tasks/projection.ts';

/** Every read model, in the order in which a transaction writes them. */
export const projections = (config: Pick<Config, 'auditDays'>): readonly ReadModel[] => [
  tasksProjection,
  auditProjection(config),
  queuesProjection,
  deadLettersProjection,
];
