import type { EventKind } from '../../../src/domain/events.ts';
import { stepId } from '../../../src/operations/bulk-kind.ts';
import type { Bulk, Evidence, Violation } from './evidence.ts';
import { type Lives, lineOf } from './lives.ts';

/** What a step of an operation appends to a task. */
const STEPS: Readonly<Record<Bulk['kind'], ReadonlySet<EventKind>>> = {
  replay: new Set(['REPLAYED']),
  cancellation: new Set(['CANCELLED', 'CANCEL_REQUESTED']),
};

/** `bulks`: whatever was accepted is known and done, and the log has as many of its steps as it says, one a task. */
export function checkBulks(
  { bulksAccepted, bulks }: Pick<Evidence, 'bulksAccepted' | 'bulks'>,
  lives: Lives,
): Violation[] {
  const known = new Set(bulks.map(({ id }) => id));
  const lost = bulksAccepted
    .filter((id) => !known.has(id))
    .map(
      (id): Violation => ({
        rule: 'bulks',
        message: `the operation ${id} was accepted and is not known`,
        witness: [id],
      }),
    );
  return [...lost, ...bulks.flatMap((bulk) => checkBulk(bulk, lives))];
}

function checkBulk(bulk: Bulk, lives: Lives): Violation[] {
  const { id, kind, state, moved } = bulk;
  const report = (message: string, witness: readonly string[]): Violation => ({
    rule: 'bulks',
    message: `the ${kind} ${id} ${message}`,
    witness: [`${kind} ${id}: ${state}, ${moved} tasks moved`, ...witness],
  });
  const found: Violation[] = state === 'done' ? [] : [report(`is still ${state}`, [])];
  const steps = [...lives.values()].flatMap((life) => {
    const [first] = life;
    if (first === undefined || !life.some(({ event }) => STEPS[kind].has(event.kind))) return [];
    const own = stepId(bulk, first.event);
    return life.filter(({ event }) => event.id === own);
  });
  if (steps.length !== moved)
    found.push(report(`says that it moved ${moved} tasks, the log has ${steps.length}`, steps.map(lineOf)));
  return found;
}
