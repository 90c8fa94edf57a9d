import type { ReadModel } from '../engine/projection.ts';
import { apply, type TaskNews } from './apply.ts';
import { write } from './sql.ts';

/** The tasks that died, and their groups by error. Nothing is ever trimmed from it. */
export const deadLettersProjection: ReadModel<TaskNews[]> = {
  name: 'dead_letters',
  tables: [
    { name: 'dead_letters', key: ['tenant', 'id'] },
    { name: 'dead_letter_failures', key: ['tenant', 'id'] },
    { name: 'dead_letter_groups', key: ['tenant', 'type', 'fingerprint'] },
  ],
  apply,
  write,
};
