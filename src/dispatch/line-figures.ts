import type { LineStats } from './decisions.ts';
import type { TypeLine } from './type-line.ts';

/** Tasks of each type that are waiting, QUEUED and unclaimed included, delayed ones not. */
export function waitingByType(lines: Iterable<TypeLine>): Record<string, number> {
  const waiting: Record<string, number> = {};
  for (const line of lines) waiting[line.type] = (waiting[line.type] ?? 0) + waitingIn(line);
  return waiting;
}

/** Tasks of each type that wait for a time, a runAt or the backoff of a retry. They are no backlog. */
export function delayedByType(lines: Iterable<TypeLine>): Record<string, number> {
  const delayed: Record<string, number> = {};
  for (const line of lines) delayed[line.type] = (delayed[line.type] ?? 0) + line.delayed;
  return delayed;
}

/** What waits by version of each type. */
export function* waitingByLine(
  lines: Iterable<TypeLine>,
): Generator<{ type: string; version: number; key: string; waiting: number }> {
  for (const line of lines)
    yield { type: line.type, version: line.version, key: line.key, waiting: waitingIn(line) };
}

export function flowOf(lines: Iterable<TypeLine>): Record<string, Pick<LineStats, 'ready' | 'claimed'>> {
  const flow: Record<string, Pick<LineStats, 'ready' | 'claimed'>> = {};
  for (const { key, ready, claimed } of lines) flow[key] = { ready, claimed };
  return flow;
}

export function statsOf(lines: Iterable<TypeLine>): Record<string, LineStats> {
  const stats: Record<string, LineStats> = {};
  for (const { key, waiting, delayed, ready, intents, running, window, claimed, claimRate } of lines)
    stats[key] = {
      waiting,
      delayed,
      ready,
      intents,
      running,
      window,
      claimed,
      claimsPerSecond: Math.round(claimRate * 10) / 10,
    };
  return stats;
}

const waitingIn = ({ waiting, intents, ready }: TypeLine): number => waiting + intents + ready;
