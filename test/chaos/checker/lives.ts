import type { Recorded } from '../../../src/domain/events.ts';
import type { Operation } from './evidence.ts';

/** The events of each task, in order, by tenant and id. */
export type Lives = ReadonlyMap<string, readonly Recorded[]>;

export const lifeKey = (tenant: string, taskId: string): string => `${tenant}/${taskId}`;

export function livesOf(log: readonly Recorded[]): Lives {
  const lives = new Map<string, Recorded[]>();
  for (const recorded of log) {
    const key = lifeKey(recorded.event.tenant, recorded.event.taskId);
    const life = lives.get(key);
    if (life === undefined) lives.set(key, [recorded]);
    else life.push(recorded);
  }
  return lives;
}

/** An event as a line of a witness. */
export function lineOf({ seq, storedAt, event }: Recorded): string {
  const { kind, from, tenant, type, taskId, round, attempt, actor } = event;
  const move = `${from ?? '(none)'} -> ${kind}`;
  return `${seq} ${new Date(storedAt).toISOString()} ${tenant}/${type} ${taskId} ${move} round ${round} attempt ${attempt} by ${actor.kind} ${actor.id}`;
}

export function operationLine({ at, op, tenant, taskId, outcome, answer }: Operation): string {
  const told = answer === undefined ? '' : ` (${answer})`;
  return `client ${new Date(at).toISOString()} ${op} ${tenant} ${taskId}: ${outcome}${told}`;
}
