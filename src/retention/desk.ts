import type { Service } from '../platform/service.ts';
import {
  type Danger,
  type Finding,
  isHarmless,
  type Needs,
  type RetentionRecords,
  type Watch,
} from './records.ts';
import { isStalled } from './watch.ts';

/** What is known of the streams' completeness and of what is still needed of them. Instants are ISO 8601 in UTC. */
export interface StreamsReport {
  readonly history: {
    /** HISTORY is the same as TASKS up to this sequence of TASKS, but for the findings. */
    readonly checkedTo: number;
    /** Events that it has not drawn yet. */
    readonly lag: number;
    readonly stalled: boolean;
    readonly findings: readonly (Omit<Finding, 'foundAt'> & { readonly foundAt: string })[];
    /** Findings that an operator has accepted. */
    readonly accepted: number;
    readonly checkedAt: string;
  } | null;
  readonly needed: {
    readonly position: number;
    readonly oldest: Needs['oldest'];
    readonly quietest: Needs['quietest'];
    readonly at: string;
  } | null;
  readonly dangers: readonly Danger[];
}

/** Where operators ask about the streams. */
export interface StreamsDesk extends Service {
  report(): StreamsReport;
  /** What is wrong, in words; undefined when nothing is. A stretch that HISTORY has twice is a finding, and harmless. */
  trouble(): string | undefined;
  /** Takes note of the findings: they cannot be mended, and are no longer told of. Throws `log_unavailable`. */
  acceptFindings(): Promise<StreamsReport>;
}

const iso = (ms: number): string => new Date(ms).toISOString();

export function createStreamsDesk({ mirror, needs, watch }: RetentionRecords): StreamsDesk {
  const report = (): StreamsReport => ({
    history: historyOf(watch()),
    needed: neededOf(needs()),
    dangers: watch()?.dangers ?? [],
  });
  return {
    name: 'streams desk',
    start: (patience) => mirror.start(patience),
    stop: () => mirror.stop(),
    report,
    trouble() {
      const seen = watch();
      if (seen === undefined) return undefined;
      const harmful = seen.findings.filter((finding) => !isHarmless(finding));
      const troubles = [
        ...harmful.slice(0, 1).map(({ what, fromSeq, toSeq }) => {
          const more = harmful.length > 1 ? `, and ${harmful.length - 1} findings more` : '';
          return `HISTORY: events ${fromSeq} to ${toSeq} are ${what}${more}`;
        }),
        ...(isStalled(seen) ? [`HISTORY has not drawn the last ${seen.lag} events of TASKS`] : []),
        ...seen.dangers.map(
          ({ stream, limit, seq, why }) => `${limit} of ${stream} is about to take event ${seq}: ${why}`,
        ),
      ];
      return troubles.length === 0 ? undefined : troubles.join('; ');
    },
    async acceptFindings() {
      await mirror.change('watch', (current) =>
        current?.kind !== 'watch' || current.findings.length === 0
          ? current
          : { ...current, findings: [], accepted: current.accepted + current.findings.length },
      );
      return report();
    },
  };
}

const historyOf = (watch: Watch | undefined): StreamsReport['history'] =>
  watch === undefined
    ? null
    : {
        checkedTo: watch.sourceSeq,
        lag: watch.lag,
        stalled: isStalled(watch),
        findings: watch.findings.map(({ foundAt, ...finding }) => ({ ...finding, foundAt: iso(foundAt) })),
        accepted: watch.accepted,
        checkedAt: iso(watch.at),
      };

const neededOf = (needs: Needs | undefined): StreamsReport['needed'] => {
  if (needs === undefined) return null;
  const { position, oldest, quietest, at } = needs;
  return { position, oldest, quietest, at: iso(at) };
};
