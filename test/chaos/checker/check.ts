import { checkBulks } from './bulk-rule.ts';
import { checkClients } from './client-rules.ts';
import { checkCopies } from './copy-rules.ts';
import { checkDebounces } from './debounce-rule.ts';
import { type Evidence, type JoinedSubmission, RULES, type Rule, type Violation } from './evidence.ts';
import { checkLimits } from './limit-rule.ts';
import { livesOf } from './lives.ts';
import { checkOrder } from './order-rule.ts';
import { checkPauses } from './pause-rule.ts';
import { checkIntake, checkRates } from './rate-rules.ts';
import { checkSlots } from './slot-rule.ts';
import { checkLives } from './task-rules.ts';
import { checkThrottles } from './throttle-rule.ts';
import { checkVersions } from './version-rule.ts';

/** Every breach of a rule that the evidence shows, those with the shortest histories first. Pure. */
export function check(evidence: Evidence): Violation[] {
  const lives = livesOf(evidence.log);
  return [
    ...checkClients(evidence.operations, lives),
    ...checkLives(lives),
    ...checkBulks(evidence, lives),
    ...checkLimits(evidence.log, evidence.limits),
    ...checkRates(evidence.log, evidence.rates),
    ...checkIntake(evidence.log, evidence),
    ...checkThrottles(evidence.joined, lives),
    ...checkDebounces(evidence.joined, evidence.log, lives),
    ...checkOrder(evidence.log),
    ...checkPauses(evidence.log, evidence.pauses),
    ...checkVersions(lives, evidence.releases),
    ...checkSlots(evidence.schedules, evidence.slots),
    ...checkCopies(evidence.log, evidence),
  ].sort((one, other) => one.witness.length - other.witness.length);
}

/** The rules that the evidence can break at all: one without limits, schedules or feeds proves nothing about them. */
export function rulesChecked(evidence: Evidence): Rule[] {
  const { log, operations, joined, limits, rates, intakeRates, schedules, pauses, bulks, releases } =
    evidence;
  const { feeds, live, verified } = evidence;
  const joinedBy = (by: JoinedSubmission['by']): boolean => joined.some((one) => one.by === by);
  const had: Partial<Record<Rule, boolean>> = {
    commands: operations.some(({ op, outcome }) => op !== 'submit' && outcome === 'acknowledged'),
    bulks: bulks.length > 0,
    limits: limits.length > 0,
    rates: rates.length > 0,
    intake: intakeRates.length > 0,
    throttle: joinedBy('throttle'),
    debounce: joinedBy('debounce'),
    order: log.some(({ event }) => event.kind === 'INGESTED' && event.data.orderingKey !== undefined),
    pauses: pauses.length > 0,
    versions: releases.length > 0,
    slots: schedules.length > 0,
    feeds: Object.keys(feeds).length > 0,
    live: live.length > 0,
    projections: verified.length > 0,
  };
  return (Object.keys(RULES) as Rule[]).filter((rule) => had[rule] !== false);
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
