import type { Projection } from '../engine/projection.ts';
import { apply, type TaskChange } from './apply.ts';
import { write } from './sql.ts';

/** The current state of every task. */
export const tasksProjection: Projection<TaskChange[]> = { name: 'tasks', apply, write };
