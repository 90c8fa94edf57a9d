import { type AuditRow, apply } from '../../../projections/audit/apply.ts';
import type { Recorded } from '../../../src/domain/events.ts';
import type { Evidence, HeardCompletion, Violation } from './evidence.ts';
import { lineOf } from './lives.ts';

type Copies = Pick<Evidence, 'history' | 'audit' | 'feeds' | 'live' | 'verified'>;

/** What was made from the log, against the log: `history`, `audit`, `projections`, `feeds`, `live`. */
export function checkCopies(log: readonly Recorded[], copies: Copies): Violation[] {
  const { history, audit, feeds, live, verified } = copies;
  const completions = log.filter(({ event }) => event.kind === 'COMPLETED');
  return [
    ...compare('history', 'HISTORY', log, history, (recorded) => JSON.stringify(recorded.event)),
    ...checkAudit(log, audit),
    ...verified
      .filter(({ differences }) => differences.length > 0)
      .map(
        ({ projection, differences }): Violation => ({
          rule: 'projections',
          message: `${projection} is not what the log gives`,
          witness: differences,
        }),
      ),
    ...Object.entries(feeds).flatMap(([name, heard]) => checkFeed(name, completions, heard)),
    ...checkLive(completions, live),
  ];
}

function checkLive(completions: readonly Recorded[], heard: readonly HeardCompletion[]): Violation[] {
  const tasks = new Map(completions.map(({ seq, event }) => [seq, event.taskId]));
  return heard
    .filter(({ seq, taskId }) => tasks.get(seq) !== taskId)
    .map(({ seq, taskId }) => ({
      rule: 'live',
      message: `the live feed tells of a completion ${seq} that the log does not have`,
      witness: [`${seq} ${taskId}`],
    }));
}

function checkAudit(log: readonly Recorded[], audit: readonly AuditRow[]): Violation[] {
  const lines = new Map(log.map((recorded) => [recorded.seq, lineOf(recorded)]));
  return compare('audit', 'the audit', apply(log), audit, (row) => JSON.stringify(row), lines);
}

/** One violation for each event that the copy lacks, has twice, has made up or has changed. */
function compare<T extends { readonly seq: number }>(
  rule: 'history' | 'audit',
  copyName: string,
  wanted: readonly T[],
  copy: readonly T[],
  textOf: (item: T) => string,
  lines: ReadonlyMap<number, string> = new Map(),
): Violation[] {
  const found: Violation[] = [];
  const report = (seq: number, what: string, ...facts: readonly string[]): void =>
    void found.push({
      rule,
      message: `${copyName} ${what} event ${seq}`,
      witness: [lines.get(seq) ?? `${seq}`, ...facts],
    });
  const copies = new Map<number, T>();
  for (const item of copy) {
    if (copies.has(item.seq)) report(item.seq, 'has twice', textOf(item));
    copies.set(item.seq, item);
  }
  for (const item of wanted) {
    const other = copies.get(item.seq);
    copies.delete(item.seq);
    if (other === undefined) report(item.seq, 'lacks', textOf(item));
    else if (textOf(other) !== textOf(item)) report(item.seq, 'has changed', textOf(item), textOf(other));
  }
  for (const [seq, item] of copies) report(seq, 'has made up', textOf(item));
  return found;
}

function checkFeed(
  name: string,
  completions: readonly Recorded[],
  heard: readonly HeardCompletion[],
): Violation[] {
  const found: Violation[] = [];
  const report = (message: string, ...witness: readonly string[]): void =>
    void found.push({ rule: 'feeds', message: `feed ${name} ${message}`, witness });
  const seqs = new Set<number>();
  let last = 0;
  for (const { seq, taskId } of heard) {
    if (seqs.has(seq)) report(`tells the completion ${seq} twice`, `${seq} ${taskId}`);
    else if (seq < last) report(`tells ${seq} after ${last}`, `${last}`, `${seq} ${taskId}`);
    seqs.add(seq);
    last = Math.max(last, seq);
  }
  for (const recorded of completions)
    if (!seqs.delete(recorded.seq)) report(`lacks the completion ${recorded.seq}`, lineOf(recorded));
  for (const seq of seqs) report(`tells a completion ${seq} that the log does not have`, `${seq}`);
  return found;
}
