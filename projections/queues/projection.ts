import type { Projection } from '../engine/projection.ts';
import { apply, type CountChange } from './apply.ts';
import { write } from './sql.ts';

/** How many tasks are in which status, by tenant, type and priority. Terminal statuses are counted too, and only grow. */
export const queuesProjection: Projection<CountChange[]> = { name: 'queues', apply, write };
