import type { FiredSlot, Schedule, Violation } from './evidence.ts';

/** `slots`: each expected slot has exactly one task. Slots outside of what is expected may still not be fired twice. */
export const checkSlots = (schedules: readonly Schedule[], slots: readonly FiredSlot[]): Violation[] =>
  schedules.flatMap((schedule) => checkSchedule(schedule, slots));

function checkSchedule({ tenant, name, expected }: Schedule, slots: readonly FiredSlot[]): Violation[] {
  const fired = new Map<number, string[]>();
  for (const { tenant: of, schedule, slotAt, taskId } of slots) {
    if (of === tenant && schedule === name) fired.set(slotAt, [...(fired.get(slotAt) ?? []), taskId]);
  }
  const label = (slotAt: number): string => `slot ${new Date(slotAt).toISOString()} of ${tenant}/${name}`;
  const doubled = [...fired].flatMap(([slotAt, tasks]): Violation[] =>
    tasks.length < 2
      ? []
      : [
          {
            rule: 'slots',
            message: `${label(slotAt)} was fired ${tasks.length} times`,
            witness: tasks.map((taskId) => `${label(slotAt)}: task ${taskId}`),
          },
        ],
  );
  const missed = expected
    .filter((slotAt) => !fired.has(slotAt))
    .map(
      (slotAt): Violation => ({
        rule: 'slots',
        message: `${label(slotAt)} was missed`,
        witness: [`${label(slotAt)}: no task`],
      }),
    );
  return [...doubled, ...missed];
}
