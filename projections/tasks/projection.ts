import type { ReadModel } from '../engine/projection.ts';
import { apply, type TaskChange } from './apply.ts';
import { write } from './sql.ts';

/** The current state of every task. */
export const tasksProjection: ReadModel<TaskChange[]> = {
  name: 'tasks',
  tables: [{ name: 'tasks', key: ['id', 'tenant'], seq: 'seq' }],
  apply,
  write,
};
