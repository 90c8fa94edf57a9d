import { type Recorded, STATUSES } from '../../../src/domain/events.ts';
import { check, rulesChecked, violationsText } from '../checker/check.ts';
import { type Evidence, RULES, type Rule, type Violation } from '../checker/evidence.ts';
import type { DoneFault } from '../nemesis/nemesis.ts';
import type { NetworkKind } from '../network/network.ts';
import type { Death } from '../stand/victim.ts';
import { type Orphan, orphansOf } from './orphans.ts';
import type { PartLogs } from './part-logs.ts';

/** What a run leaves: the evidence that is judged, and what the figures need besides. */
export interface Run {
  readonly seed: number;
  readonly seconds: number;
  readonly network: NetworkKind;
  readonly evidence: Evidence;
  readonly faults: readonly DoneFault[];
  readonly deaths: readonly Death[];
  readonly starts: PartLogs['starts'];
  /** When the load began and ended, ms since 1970. */
  readonly load: { readonly from: number; readonly to: number };
  readonly complaints: readonly string[];
}

export interface Report {
  readonly seed: number;
  readonly seconds: number;
  readonly network: NetworkKind;
  readonly submitted: number;
  readonly acknowledged: number;
  readonly refused: number;
  /** No answer at all, after all tries. */
  readonly unknown: number;
  readonly tasks: number;
  readonly ended: Readonly<Record<string, number>>;
  readonly events: number;
  readonly attemptsLost: number;
  /** Of dispatchers, and what they began from. */
  readonly starts: PartLogs['starts'];
  /** Bulk operations, commands on single tasks, pauses, slots: what was done besides. */
  readonly besides: Readonly<Record<string, number>>;
  readonly faults: Readonly<Record<string, number>>;
  readonly faultsNotDone: number;
  /** From a fault's end to the next completion. */
  readonly longestRecoveryMs: number;
  readonly recoveredFrom: string;
  /** Between two completions while the load ran. */
  readonly longestStallMs: number;
  /** How many attempts dead workers left behind. */
  readonly orphans: number;
  /** Those that were away longest, the worst first. */
  readonly longestOrphans: readonly Orphan[];
  readonly liveFeedHeard: string;
  /** Parts that ended although nobody killed them, beside workers that their tasks crashed. */
  readonly endedByThemselves: number;
  readonly rules: readonly Rule[];
  readonly violations: readonly Violation[];
  readonly complaints: readonly string[];
}

const ORPHANS_TOLD = 5;
/** Sooner than this an attempt of the stand may be back without a fault in its way: its lease and its worker's silence. */
const WORTH_A_TALE_MS = 25_000;

export function reportOf(run: Run): Report {
  const { evidence, faults, load } = run;
  const { log, operations } = evidence;
  const submits = new Map<string, Set<string>>();
  for (const { op, taskId, outcome } of operations) {
    if (op !== 'submit') continue;
    submits.set(taskId, (submits.get(taskId) ?? new Set()).add(outcome));
  }
  const told = [...submits.values()];
  const acknowledged = told.filter((outcomes) => outcomes.has('acknowledged')).length;
  const unknown = told.filter((outcomes) => outcomes.has('unknown') && !outcomes.has('acknowledged')).length;
  const recovery = longest(
    faults.map((fault) => [`${fault.kind} ${fault.target}`, recoveryMs(log, fault, load)]),
  );
  const orphans = orphansOf(log, run.deaths, faults);
  return {
    seed: run.seed,
    seconds: run.seconds,
    network: run.network,
    submitted: told.length,
    acknowledged,
    refused: told.length - acknowledged - unknown,
    unknown,
    ...endsOf(log),
    events: log.length,
    starts: run.starts,
    attemptsLost: log.filter(({ event }) => event.kind === 'RETRY_CLAIMED').length,
    besides: {
      ...countBy(operations.flatMap(({ op }) => (op === 'submit' ? [] : [op]))),
      ...countBy(evidence.joined.map(({ by }) => by)),
      ...countBy(evidence.bulks.map(({ kind }) => kind)),
      pause: evidence.pauses.length,
      slot: evidence.slots.length,
    },
    faults: countBy(faults.map(({ kind }) => kind)),
    faultsNotDone: faults.filter(({ failed }) => failed !== undefined).length,
    longestRecoveryMs: recovery[1],
    recoveredFrom: recovery[0],
    longestStallMs: longestStallMs(log, load),
    orphans: orphans.length,
    longestOrphans: orphans.slice(0, ORPHANS_TOLD),
    liveFeedHeard: `${evidence.live.length} of ${log.filter(({ event }) => event.kind === 'COMPLETED').length}`,
    endedByThemselves: run.deaths.filter(({ by, name }) => by === 'itself' && !name.startsWith('worker'))
      .length,
    rules: rulesChecked(evidence),
    violations: check(evidence),
    complaints: run.complaints,
  };
}

/** How each task ended, by the last event that is a status. */
function endsOf(log: readonly Recorded[]): Pick<Report, 'tasks' | 'ended'> {
  const last = new Map<string, string>();
  for (const { event } of log)
    if ((STATUSES as readonly string[]).includes(event.kind))
      last.set(`${event.tenant}/${event.taskId}`, event.kind);
  return { tasks: last.size, ended: countBy([...last.values()]) };
}

/** Once nothing is submitted any more, nothing need complete. */
function recoveryMs(log: readonly Recorded[], { endedAt }: DoneFault, { to }: Run['load']): number {
  const next = log.find(({ event, storedAt }) => event.kind === 'COMPLETED' && storedAt >= endedAt);
  return Math.max(0, Math.min(next?.storedAt ?? to, to) - endedAt);
}

function longestStallMs(log: readonly Recorded[], { from, to }: Run['load']): number {
  let last = from;
  let longestMs = 0;
  for (const { event, storedAt } of log) {
    if (event.kind !== 'COMPLETED' || storedAt > to) continue;
    longestMs = Math.max(longestMs, storedAt - last);
    last = Math.max(last, storedAt);
  }
  return longestMs;
}

const longest = (candidates: readonly (readonly [string, number])[]): readonly [string, number] =>
  candidates.reduce((most, each) => (each[1] > most[1] ? each : most), ['', 0]);

function countBy(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

const listText = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

/** The report for people. */
export function reportText(report: Report): string {
  const { violations, complaints } = report;
  const [worst] = report.longestOrphans;
  const tale =
    worst === undefined || worst.ms < WORTH_A_TALE_MS
      ? ''
      : [`: ${worst.taskId}`, ...worst.story].join('\n    ');
  const rows: readonly (readonly [string, string])[] = [
    ['seed, length', `${report.seed}, ${report.seconds} s, over ${report.network}`],
    [
      'submissions',
      `${report.submitted}: acknowledged ${report.acknowledged}, refused ${report.refused}, never answered ${report.unknown}`,
    ],
    ['tasks', `${report.tasks}: ${listText(report.ended)}`],
    ['events', `${report.events}, of which attempts lost ${report.attemptsLost}`],
    ['dispatchers began', `from a snapshot ${report.starts.snapshot}, from the log ${report.starts.log}`],
    ['besides', listText(report.besides)],
    ['faults', `${listText(report.faults)} (not done: ${report.faultsNotDone})`],
    ['longest recovery', `${seconds(report.longestRecoveryMs)} after ${report.recoveredFrom || 'nothing'}`],
    ['longest stall', seconds(report.longestStallMs)],
    [
      'orphaned attempts',
      `${report.orphans}, back within ${seconds(worst?.ms ?? 0)} of their worker's death${tale}`,
    ],
    ['live feed', `${report.liveFeedHeard} completions heard`],
    ['ended by themselves', `${report.endedByThemselves} parts`],
    ['rules checked', `${report.rules.length} of ${Object.keys(RULES).length}: ${report.rules.join(', ')}`],
  ];
  const table = rows.map(([name, value]) => `${name.padEnd(20)} ${value}`).join('\n');
  const complaint = complaints.map((text) => `! ${text}\n`).join('');
  const verdict =
    violations.length === 0
      ? `No violation${complaints.length === 0 ? '' : ', but not everything could be checked'}.`
      : `${violations.length} violations.\n${violationsText(violations)}`;
  return `${table}\n${complaint}${verdict}`;
}
