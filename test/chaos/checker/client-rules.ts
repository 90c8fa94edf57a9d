import type { EventKind } from '../../../src/domain/events.ts';
import type { Command, CommandOperation, Operation, SubmitOperation, Violation } from './evidence.ts';
import { type Lives, lifeKey, lineOf, operationLine } from './lives.ts';

/** What the clients were told, against the log: `acknowledged`, `refused`, `commands`. */
export function checkClients(operations: readonly Operation[], lives: Lives): Violation[] {
  const accepted = new Set(
    operations
      .filter(({ op, outcome }) => op === 'submit' && outcome !== 'refused')
      .map(({ tenant, taskId }) => lifeKey(tenant, taskId)),
  );
  return operations.flatMap((operation) => {
    if (operation.op !== 'submit') return checkCommand(operation, lives);
    // One key may be tried several times: a refusal says nothing about the other tries.
    if (operation.outcome === 'refused' && accepted.has(lifeKey(operation.tenant, operation.taskId)))
      return [];
    return checkSubmit(operation, lives);
  });
}

function checkSubmit(operation: SubmitOperation, lives: Lives): Violation[] {
  const { outcome, tenant, taskId, type, seq } = operation;
  const life = lives.get(lifeKey(tenant, taskId)) ?? [];
  const witness = [operationLine(operation), ...life.slice(0, 1).map(lineOf)];
  const first = life[0];
  switch (outcome) {
    case 'unknown':
      return [];
    case 'refused':
      return first === undefined
        ? []
        : [{ rule: 'refused', message: `task ${taskId} was refused, and is in the log`, witness }];
    case 'acknowledged': {
      const report = (message: string): Violation[] => [{ rule: 'acknowledged', message, witness }];
      if (first === undefined) return report(`task ${taskId} was acknowledged and is not in the log`);
      if (first.event.kind !== 'INGESTED') return report(`task ${taskId} begins with ${first.event.kind}`);
      if (first.event.type !== type) return report(`task ${taskId} is a ${first.event.type}, not a ${type}`);
      if (seq !== undefined && first.seq !== seq)
        return report(`task ${taskId} was acknowledged at ${seq}, and stands at ${first.seq}`);
      return [];
    }
    default:
      return outcome satisfies never;
  }
}

/** What an acknowledged command leaves in the log. */
const TRACES: Readonly<Record<Command, readonly EventKind[]>> = {
  cancel: ['CANCEL_REQUESTED', 'CANCELLED'],
  reschedule: ['RESCHEDULED'],
  discard: ['DISCARDED'],
};

function checkCommand(operation: CommandOperation, lives: Lives): Violation[] {
  if (operation.outcome !== 'acknowledged') return [];
  const life = lives.get(lifeKey(operation.tenant, operation.taskId)) ?? [];
  const { op } = operation;
  if (life.some(({ event: { kind } }) => TRACES[op].includes(kind))) return [];
  return [
    {
      rule: 'commands',
      message: `the ${op} of ${operation.taskId} was acknowledged and is not in the log`,
      witness: [operationLine(operation), ...life.map(lineOf)],
    },
  ];
}
