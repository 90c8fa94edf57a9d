import type { Command } from 'commander';
import type { CancellationAnswer, CancellationDryRun } from './answers.ts';
import { instantOrAge, openSession, type Session } from './connection.ts';
import { addOperationCommands, followed, type OperationKind } from './operation.ts';
import { numberAboveZero } from './settings.ts';
import { taskTable } from './task-text.ts';
import { EXIT, type Run, type Terminal } from './terminal.ts';
import { relative } from './time.ts';

interface StartOptions {
  readonly type?: string;
  readonly status?: readonly string[];
  readonly since?: string | number;
  readonly before?: string | number;
  readonly reason: string;
  readonly rate?: number;
  readonly dryRun?: boolean;
  readonly wait?: boolean;
}

const COLUMNS = [
  { title: 'CANCELLATION' },
  { title: 'STATE' },
  { title: 'CANCELLED', align: 'right' },
  { title: 'REQUESTED', align: 'right' },
  { title: 'FAILED', align: 'right' },
  { title: 'OF', align: 'right' },
  { title: 'STARTED', align: 'right' },
] as const;

export function addCancellationCommands(program: Command, terminal: Terminal, run: Run): void {
  const cancellation = program.command('cancellation').description('Cancel all tasks that a filter finds');
  cancellation
    .command('start')
    .description('Cancel waiting tasks at once, and ask the workers to end running ones')
    .option('--type <type>')
    .option('--status <status...>', 'one or more of them; all that have not ended when absent')
    .option('--since <when>', 'submitted from this instant on, or this long ago (2h)', instantOrAge(terminal))
    .option('--before <when>', 'submitted before this instant, or this long ago', instantOrAge(terminal))
    .requiredOption('--reason <text>', 'kept in the history of each task')
    .option('--rate <n>', 'tasks a second at most; 0.5 is one in two', numberAboveZero)
    .option('--dry-run', 'only show how many there are, and some of them')
    .option('--wait', 'show the progress until the end; exit code 1 when a task failed to be cancelled')
    .action((options: StartOptions, command: Command) =>
      run(async () => {
        const session = openSession(command, terminal);
        const { type, status, since, before, reason, rate, dryRun, wait = false } = options;
        const answer = await session.api.startCancellation({
          filter: {
            tenant: session.tenant,
            type,
            status: status?.map((each) => each.toUpperCase()),
            submittedFrom: since,
            submittedTo: before,
          },
          reason,
          ratePerSecond: rate,
          dryRun,
        });
        if (!('dryRun' in answer)) return followed(session, CANCELLATION, { first: answer, wait });
        session.show(answer, () => dryRunText(answer, session));
        return EXIT.ok;
      }),
    );
  addOperationCommands(cancellation, CANCELLATION, { terminal, run });
}

const line = ({ id, state, progress }: CancellationAnswer): string => {
  const { cancelled, requested, skipped, failed, expected } = progress;
  return `${id}  ${state}: ${cancelled} cancelled, ${requested} requested, ${skipped} skipped, ${failed} failed of ${expected ?? '?'}`;
};

const row = ({ id, state, progress, createdAt }: CancellationAnswer, now: number): string[] => [
  id,
  state,
  String(progress.cancelled),
  String(progress.requested),
  String(progress.failed),
  String(progress.expected ?? '?'),
  relative(createdAt, now),
];

const CANCELLATION: OperationKind<CancellationAnswer> = {
  noun: 'cancellation',
  done: 'cancelled',
  columns: COLUMNS,
  row,
  line,
  text: line,
  list: (api, tenant) => api.cancellations(tenant),
  get: (api, id) => api.cancellation(id),
  control: (api, id, wish) => api.controlCancellation(id, wish),
};

const dryRunText = ({ count, atLeast, sample }: CancellationDryRun, session: Session): string =>
  count === 0
    ? 'No task matches.'
    : `${taskTable(sample, session)}\n${atLeast ? 'At least ' : ''}${count} would be cancelled${count > sample.length ? `, of which the newest ${sample.length} are shown` : ''}.`;
