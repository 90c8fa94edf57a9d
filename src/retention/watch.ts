import { randomUUID } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import { Leadership } from '../log/leadership.ts';
import type { Names } from '../log/subjects.ts';
import type { Logger } from '../observe/log.ts';
import type { Reading } from '../observe/signals.ts';
import type { Clock } from '../platform/clock.ts';
import type { Config } from '../platform/config.ts';
import { type Service, serviceGroup } from '../platform/service.ts';
import { type Anchor, checkHistory } from './history-check.ts';
import { judge, type Limits } from './judge.ts';
import { type LogFacts, openLogFacts, type StreamFacts } from './log-facts.ts';
import { passes } from './passes.ts';
import { type Danger, type Finding, isHarmless, openRetentionRecords, type Watch } from './records.ts';

export interface RetentionWatchParts {
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly config: Pick<
    Config,
    'leaderLeaseMs' | 'hotWindowHours' | 'historyDays' | 'historyBytes' | 'retentionCheckMs'
  >;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface RetentionWatch extends Service {
  /** One pass, by the leader only; resolves with what it has written down. */
  runOnce(): Promise<Watch | undefined>;
  readings(): Reading[];
}

/** A limit is told of when this part of it is used up. */
const ALARM_PART = 0.8;
/** HISTORY may be behind TASKS for a moment; when it draws nothing for so long although it is, something is wrong. */
const STALL_MS = 60_000;
/** Findings kept in the record; what came before is in the log lines. */
const MOST_FINDINGS = 50;

export const limitsOf = ({
  hotWindowHours,
  historyDays,
  historyBytes,
}: Pick<Config, 'hotWindowHours' | 'historyDays' | 'historyBytes'>): Limits => ({
  hotWindowMs: hotWindowHours * 3_600_000,
  historyMs: historyDays * 24 * 3_600_000,
  historyBytes: historyBytes < 0 ? Number.POSITIVE_INFINITY : historyBytes,
});

export const isStalled = ({ stalledSince, at }: Watch): boolean =>
  stalledSince !== null && at - stalledSince >= STALL_MS;

/**
 * Looks after the streams, one process at a time: that HISTORY has every event of TASKS once and in order, that it keeps
 * up, and that no limit is about to take what an unfinished task or a read model needs. It changes nothing: it tells.
 */
export function createRetentionWatch(parts: RetentionWatchParts): RetentionWatch {
  const { nc, names, config, clock, logger } = parts;
  const records = openRetentionRecords(parts);
  const limits = limitsOf(config);
  let facts: Promise<LogFacts> | undefined;
  const leadership = new Leadership({
    nc,
    bucket: names.buckets.leaders,
    key: 'retention',
    owner: `retention-${randomUUID()}`,
    leaseMs: config.leaderLeaseMs,
    logger,
    onChange: () => undefined,
  });

  const dangersNow = async (log: LogFacts, streams: StreamFacts): Promise<Danger[]> => {
    const needs = records.needs();
    if (needs === undefined || needs.logId !== streams.logId) return [];
    const now = clock.now();
    const { tasks, ...kept } = await log.kept(needs, streams.history);
    // When nobody has looked for a while, the task may have spoken, or ended, since.
    const fresh = now - needs.at <= (1 - ALARM_PART) * limits.hotWindowMs && tasks !== undefined;
    return judge({ ...kept, ...(fresh && { tasks }) }, limits, {
      now,
      part: ALARM_PART,
      streams: names.streams,
    });
  };

  async function pass(): Promise<{ watch: Watch; found: readonly Finding[] }> {
    facts ??= openLogFacts(nc, names);
    const log = await facts;
    const streams = await log.streams();
    const before = continued(records.watch(), streams) ?? (await begun(log, streams, clock.now()));
    const { anchor, findings } = await checkHistory(log.history.messageAt, before, streams.history.last_seq);
    const now = clock.now();
    const found: Finding[] = [...findings, ...deletedSince(before, streams)].map((each) => ({
      ...each,
      foundAt: now,
    }));
    const lag = Math.max(0, streams.lastSeq - anchor.sourceSeq);
    const stands = lag > 0 && anchor.sourceSeq === before.sourceSeq;
    const watch: Watch = {
      ...before,
      ...anchor,
      deleted: deletedIn(streams),
      lag,
      stalledSince: stands ? (before.stalledSince ?? now) : null,
      findings: [...before.findings, ...found].slice(-MOST_FINDINGS),
      dangers: await dangersNow(log, streams),
      at: now,
    };
    tell(logger, { before, watch, found });
    return { watch, found };
  }

  async function runOnce(): Promise<Watch | undefined> {
    if (!leadership.holds()) return undefined;
    const { watch, found } = await pass();
    // What an operator has accepted meanwhile stays accepted.
    await records.mirror.change('watch', (current) =>
      current?.kind === 'watch' && current.accepted !== watch.accepted
        ? { ...watch, accepted: current.accepted, findings: [...found] }
        : watch,
    );
    return watch;
  }

  return {
    ...serviceGroup('retention watch', [
      records.mirror,
      leadership,
      passes('retention passes', config.retentionCheckMs, async () => {
        try {
          await runOnce();
        } catch (error) {
          facts = undefined;
          logger.warn({ error: String(error) }, 'the streams cannot be looked after');
        }
      }),
    ]),
    runOnce,
    readings() {
      const watch = records.watch();
      return watch === undefined || !leadership.holds() ? [] : retentionReadings(watch);
    },
  };
}

function tell(
  logger: Logger,
  { before, watch, found }: { before: Watch; watch: Watch; found: readonly Finding[] },
): void {
  for (const finding of found) {
    if (isHarmless(finding)) logger.warn(finding, 'HISTORY has a stretch twice; it is read once');
    else
      logger.error({ alarm: 'history', ...finding }, 'HISTORY is not what TASKS was: see projection status');
  }
  if (isStalled(watch) && !isStalled(before))
    logger.error({ alarm: 'history_stalled', lag: watch.lag }, 'HISTORY draws no events from TASKS');
  for (const danger of watch.dangers) {
    if (before.dangers.some(({ limit, stream }) => limit === danger.limit && stream === danger.stream))
      continue;
    logger.error({ alarm: 'retention', ...danger }, 'a limit is about to take what is still needed');
  }
}

export const retentionReadings = ({
  findings,
  lag,
  dangers,
}: Pick<Watch, 'findings' | 'lag' | 'dangers'>): Reading[] => [
  { signal: 'historyFindings', value: findings.length },
  { signal: 'historyLag', value: lag },
  { signal: 'retentionDangers', value: dangers.length },
];

/** The record, when it is of these streams and HISTORY still has its place. */
function continued(watch: Watch | undefined, { logId, historyId, history }: StreamFacts): Watch | undefined {
  const same = watch?.logId === logId && watch.historyId === historyId;
  return same && watch.historySeq >= history.first_seq - 1 && watch.historySeq <= history.last_seq
    ? watch
    : undefined;
}

/** From its beginning; or from the first message that its limits have left, of whose predecessors nothing can be said. */
async function begun(log: LogFacts, { logId, historyId, history }: StreamFacts, now: number): Promise<Watch> {
  const first = history.first_seq > 1 ? (await log.history.bounds())?.first : undefined;
  const anchor: Anchor =
    first === undefined
      ? { historySeq: 0, sourceSeq: 0 }
      : { historySeq: first.seq, sourceSeq: first.sourceSeq };
  const nothing = { lag: 0, stalledSince: null, findings: [], accepted: 0, dangers: [], deleted: [] };
  return { kind: 'watch', logId, historyId, ...anchor, ...nothing, at: now };
}

/** Of a stream without messages the server says that 0 is deleted. */
const deletedIn = ({ history }: StreamFacts): number[] =>
  history.messages === 0 ? [] : (history.deleted ?? []);

/** Messages that somebody has deleted out of the middle. Which events they were follows from their neighbours. */
function deletedSince(
  { deleted, historySeq, sourceSeq }: Watch,
  streams: StreamFacts,
): Omit<Finding, 'foundAt'>[] {
  const known = new Set(deleted);
  return deletedIn(streams)
    .filter((seq) => !known.has(seq))
    .slice(0, MOST_FINDINGS)
    .map((seq) => {
      const event = Math.max(0, sourceSeq + seq - historySeq);
      return { what: 'deleted', fromSeq: event, toSeq: event, historySeq: seq };
    });
}
