import type { Command } from 'commander';
import type { JobAnswer, ProjectionsAnswer, StreamsAnswer } from './answers.ts';
import { inSession, instantOrAge, openSession, POINT, type Session } from './connection.ts';
import { type Column, facts, table } from './table.ts';
import { EXIT, type ExitCode, type Run, type Terminal } from './terminal.ts';
import { instant, relative } from './time.ts';

/** Pause between two looks at a job, in ms. */
const LOOK_AGAIN_MS = 500;
const BAR_WIDTH = 30;

const PROJECTIONS: readonly Column[] = [
  { title: 'PROJECTION' },
  { title: 'POSITION', align: 'right' },
  { title: 'LAG', align: 'right' },
  { title: 'SET ASIDE', align: 'right' },
  { title: 'MOVED', align: 'right' },
];
const JOBS: readonly Column[] = [
  { title: 'JOB' },
  { title: 'KIND' },
  { title: 'OF', flexible: true },
  { title: 'STATE' },
  { title: 'POSITION', align: 'right' },
  { title: 'ASKED FOR', align: 'right' },
];

interface RebuildOptions {
  readonly until?: string | number;
  readonly into?: string;
  readonly acceptLoss?: boolean;
  readonly wait: boolean;
}

export function addProjectionCommands(program: Command, terminal: Terminal, run: Run): void {
  const projection = program
    .command('projection')
    .description('Read models: status, rebuild, verify (for operators)');

  addStatus(projection, terminal, run);
  addAcceptHistory(projection, terminal, run);
  addRebuild(projection, terminal, run);
  addVerify(projection, terminal, run);
  addJobCommands(projection, terminal, run);
}

function addStatus(projection: Command, terminal: Terminal, run: Run): void {
  const act = inSession(terminal, run);
  projection
    .command('status')
    .description('How far the read models have come, and the last jobs on them')
    .action((_options: object, command: Command) =>
      act(command, async (session) => {
        const answer = await session.api.projections();
        session.show(answer, () => statusText(answer, terminal));
      }),
    );
}

function addAcceptHistory(projection: Command, terminal: Terminal, run: Run): void {
  const act = inSession(terminal, run);
  projection
    .command('accept-history')
    .description('Take note of what HISTORY lacks, so that it is no longer told of')
    .action((_options: object, command: Command) =>
      act(command, async (session) => {
        const answer = await session.api.acceptHistory();
        session.show(answer, () => streamsText(answer, terminal).join('\n'));
      }),
    );
}

function addRebuild(projection: Command, terminal: Terminal, run: Run): void {
  projection
    .command('rebuild')
    .description('Rebuild a read model beside the live one, then put it in its place')
    .argument('[name]', 'one of them, or all', 'all')
    .option('--until <point>', `instead: all of them, with --into, as of ${POINT}`, instantOrAge(terminal))
    .option('--into <schema>', 'the new schema for --until')
    .option('--accept-loss', 'although the streams no longer have everything from the beginning')
    .option('--no-wait', 'do not wait for the end')
    .action((name: string, options: RebuildOptions, command: Command) =>
      run(async () => {
        if ((options.until === undefined) !== (options.into === undefined))
          command.error('error: --until and --into belong together', { code: 'taskledger.usage' });
        const session = openSession(command, terminal);
        const { until, into, acceptLoss = false } = options;
        const job =
          until === undefined || into === undefined
            ? await session.api.rebuildProjection(name, { acceptLoss })
            : await session.api.buildProjections({ schema: into, until });
        return follow(session, job, options.wait);
      }),
    );
}

function addVerify(projection: Command, terminal: Terminal, run: Run): void {
  projection
    .command('verify')
    .description('Compare a read model with what the log gives; exit code 1 when rows differ')
    .argument('[name]', 'one of them, or all', 'all')
    .option('--no-wait', 'do not wait for the end')
    .action((name: string, options: { wait: boolean }, command: Command) =>
      run(async () => {
        const session = openSession(command, terminal);
        return follow(session, await session.api.verifyProjection(name), options.wait);
      }),
    );
}

function addJobCommands(projection: Command, terminal: Terminal, run: Run): void {
  const onJob = (
    verb: 'watch' | 'stop' | 'resume' | 'discard',
    about: string,
    act: (session: Session, id: string) => Promise<JobAnswer>,
    wait: boolean,
  ): void => {
    projection
      .command(verb)
      .description(about)
      .argument('<job>')
      .action((id: string, _options: object, command: Command) =>
        run(async () => {
          const session = openSession(command, terminal);
          return follow(session, await act(session, id), wait);
        }),
      );
  };
  onJob('watch', 'Wait for the end of a job', ({ api }, id) => api.projectionJob(id), true);
  onJob('stop', 'Stop a job; it can be resumed', ({ api }, id) => api.moveJob(id, 'stop'), false);
  onJob('resume', 'Resume a stopped job where it was', ({ api }, id) => api.moveJob(id, 'resume'), true);
  onJob('discard', 'Give a stopped job up', ({ api }, id) => api.moveJob(id, 'discard'), false);
}

function statusText(answer: ProjectionsAnswer, terminal: Terminal): string {
  const { log, keptFromSeq, projections, jobs, streams } = answer;
  const now = terminal.clock.now();
  const kept = keptFromSeq > 1 ? `; nothing is kept of the events before ${keptFromSeq}` : '';
  const parts = [
    `The log ends at ${log.lastSeq}${kept}.`,
    table(
      PROJECTIONS,
      projections.map(({ name, position, lag, poisoned, movedAt }) => [
        name,
        String(position),
        String(lag),
        String(poisoned),
        relative(movedAt, now),
      ]),
      terminal.columns,
    ),
  ];
  parts.push(streamsText(streams, terminal).join('\n'));
  if (jobs.length > 0)
    parts.push(
      table(
        JOBS,
        jobs.map((job) => [
          job.id,
          job.kind,
          job.projections.join(' '),
          job.state,
          String(job.position),
          relative(job.requestedAt, now),
        ]),
        terminal.columns,
      ),
    );
  return parts.join('\n\n');
}

function streamsText({ history, dangers }: StreamsAnswer, terminal: Terminal): string[] {
  const now = terminal.clock.now();
  const lines: string[] = [];
  if (history === null) lines.push('HISTORY has not been compared with TASKS yet.');
  else {
    const { checkedTo, checkedAt, accepted, findings, lag, stalled } = history;
    const known = accepted > 0 ? `, but for ${accepted} findings accepted` : '';
    const verdict = findings.length === 0 ? `has every event once${known}` : 'IS NOT WHOLE';
    lines.push(`HISTORY ${verdict}: compared with TASKS up to ${checkedTo}, ${relative(checkedAt, now)}.`);
    for (const { what, fromSeq, toSeq, historySeq, foundAt } of findings)
      lines.push(
        `  events ${fromSeq} to ${toSeq}: ${what} (at ${historySeq} of HISTORY, found ${relative(foundAt, now)})`,
      );
    if (stalled) lines.push(`HISTORY HAS STOPPED: it lacks the last ${lag} events of TASKS.`);
  }
  for (const { stream, limit, seq, why } of dangers)
    lines.push(`${limit} OF ${stream} IS ABOUT TO TAKE EVENT ${seq}: ${why}.`);
  return lines;
}

const LEAVING = (id: string): string =>
  `Ctrl+C leaves the job at work; come back to it with: projection watch ${id}`;
const hasWork = ({ state }: JobAnswer): boolean => state === 'waiting' || state === 'running';

/** Shows progress until the job ends, if that is wanted. Leaving here does not stop the job. */
async function follow(session: Session, begun: JobAnswer, wait: boolean): Promise<ExitCode> {
  const { terminal, api, json } = session;
  let job = begun;
  const drawn = Number.isFinite(terminal.columns) && !json;
  if (drawn && wait && hasWork(job)) terminal.err(`${LEAVING(job.id)}\n`);
  while (wait && hasWork(job)) {
    if (drawn) terminal.err(`\r${progressLine(job).padEnd(terminal.columns - 1)}`);
    await terminal.pause(LOOK_AGAIN_MS);
    job = await api.projectionJob(job.id);
  }
  if (drawn && wait) terminal.err(`\r${' '.repeat(terminal.columns - 1)}\r`);
  session.show(job, () => jobText(job, terminal));
  const differs = job.report?.tables?.some((each) => each.missing + each.surplus + each.changed > 0) ?? false;
  return job.state === 'failed' || differs ? EXIT.taskFailed : EXIT.ok;
}

export function progressLine({ kind, state, phase, position, target, eventsPerSecond }: JobAnswer): string {
  if (state === 'waiting') return `${kind}: waiting for a projector`;
  const part = target === 0 ? 0 : Math.min(1, position / target);
  const filled = Math.round(part * BAR_WIDTH);
  const bar = `${'#'.repeat(filled)}${'.'.repeat(BAR_WIDTH - filled)}`;
  const left = eventsPerSecond > 0 ? `, ${Math.ceil((target - position) / eventsPerSecond)} s left` : '';
  return `${phase ?? state} [${bar}] ${Math.floor(100 * part)} %  ${position} of ${target}, ${eventsPerSecond}/s${left}`;
}

function jobText(job: JobAnswer, terminal: Terminal): string {
  const { report } = job;
  const head = facts(
    [
      ['job', job.id],
      ['kind', job.kind],
      ['of', job.projections.join(', ')],
      ['state', job.state],
      ['position', String(report?.position ?? job.position)],
      ['schema', job.kind === 'build' ? job.schema : undefined],
      ['took', report === null ? undefined : `${report.seconds} s`],
      ['set aside', report !== null && report.poisoned > 0 ? String(report.poisoned) : undefined],
      ['error', job.error ?? undefined],
      ['ended', job.finishedAt === null ? undefined : instant(job.finishedAt, terminal.clock.now())],
    ],
    terminal.columns,
  );
  return [head, ...(report?.tables ?? []).map(differenceText)].join('\n');
}

function differenceText({
  table: name,
  rows,
  missing,
  surplus,
  changed,
  fromSeq,
  sample,
}: NonNullable<NonNullable<JobAnswer['report']>['tables']>[number]): string {
  if (missing + surplus + changed === 0) return `${name}: ${rows} rows, no difference`;
  const from = fromSeq === null ? '' : `, from event ${fromSeq} on`;
  const lines = sample.map(({ key, columns, live }) => {
    const what = columns.length > 0 ? columns.join(', ') : live === null ? 'missing' : 'surplus';
    return `  ${JSON.stringify(key)}: ${what}`;
  });
  const head = `${name}: ${rows} rows; ${missing} missing, ${surplus} surplus, ${changed} changed${from}`;
  return [head, ...lines].join('\n');
}
