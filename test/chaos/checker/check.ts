import { checkClients } from './client-rules.ts';
import { checkCopies } from './copy-rules.ts';
import { type Evidence, RULES, type Rule, type Violation } from './evidence.ts';
import { checkLimits } from './limit-rule.ts';
import { livesOf } from './lives.ts';
import { checkSlots } from './slot-rule.ts';
import { checkLives } from './task-rules.ts';

/** Every breach of a rule that the evidence shows, those with the shortest histories first. Pure. */
export function check(evidence: Evidence): Violation[] {
  const lives = livesOf(evidence.log);
  return [
    ...checkClients(evidence.operations, lives),
    ...checkLives(lives),
    ...checkLimits(evidence.log, evidence.limits),
    ...checkSlots(evidence.schedules, evidence.slots),
    ...checkCopies(evidence.log, evidence),
  ].sort((one, other) => one.witness.length - other.witness.length);
}

/** The rules that the evidence can break at all: one without limits, schedules or feeds proves nothing about them. */
export function rulesChecked({ limits, schedules, feeds }: Evidence): Rule[] {
  const absent = new Set<string>([
    ...(limits.length === 0 ? ['limits'] : []),
    ...(schedules.length === 0 ? ['slots'] : []),
    ...(Object.keys(feeds).length === 0 ? ['feeds'] : []),
  ]);
  return (Object.keys(RULES) as Rule[]).filter((rule) => !absent.has(rule));
}

/** How many breaches of which rule, and the shortest history of each. */
export function violationsText(violations: readonly Violation[]): string {
  const byRule = new Map<Rule, Violation[]>();
  for (const violation of violations) {
    const others = byRule.get(violation.rule);
    if (others === undefined) byRule.set(violation.rule, [violation]);
    else others.push(violation);
  }
  return [...byRule]
    .map(([rule, found]) => {
      const [shortest] = found;
      const history = (shortest?.witness ?? []).map((line) => `    ${line}`).join('\n');
      return `${found.length} x not so: ${RULES[rule]}\n  ${shortest?.message}\n${history}`;
    })
    .join('\n');
}
