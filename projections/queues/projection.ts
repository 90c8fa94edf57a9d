import type { ReadModel } from '../engine/projection.ts';
import { apply, type CountChange } from './apply.ts';
import { write } from './sql.ts';

/** How many tasks are in which status, by tenant, type and priority. Terminal statuses are counted too, and only grow. */
export const queuesProjection: ReadModel<CountChange[]> = {
  name: 'queues',
  // A counter that went up and down within one batch was never written.
  tables: [{ name: 'queues', key: ['tenant', 'type', 'priority', 'status'], meaningful: 'count <> 0' }],
  apply,
  write,
};
