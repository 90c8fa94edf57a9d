import type { Command } from 'commander';
import type { CancellationAnswer, CancellationDryRun } from './answers.ts';
import { instantOrAge, openSession, type Session, wholeNumber } from './connection.ts';
import { table } from './table.ts';
import { taskTable } from './task-text.ts';
import { EXIT, type ExitCode, type Terminal } from './terminal.ts';
import { relative } from './time.ts';

/** Pause between two looks at a cancellation that is waited for, in ms. */
const LOOK_AGAIN_MS = 500;

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

export function addCancellationCommands(
  program: Command,
  terminal: Terminal,
  run: (action: () => Promise<ExitCode>) => Promise<void>,
): void {
  const cancellation = program.command('cancellation').description('Cancel all tasks that a filter finds');
  cancellation
    .command('start')
    .description('Cancel waiting tasks at once, and ask the workers to end running ones')
    .option('--type <type>')
    .option('--status <status...>', 'one or more of them; all that have not ended when absent')
    .option('--since <when>', 'submitted from this instant on, or this long ago (2h)', instantOrAge(terminal))
    .option('--before <when>', 'submitted before this instant, or this long ago', instantOrAge(terminal))
    .requiredOption('--reason <text>', 'kept in the history of each task')
    .option('--rate <n>', 'tasks a second at most', wholeNumber)
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
        if (!('dryRun' in answer)) return followed(session, answer, wait);
        session.show(answer, () => dryRunText(answer, terminal));
        return EXIT.ok;
      }),
    );
  cancellation
    .command('list')
    .description('Cancellations of the last 90 days, the newest first')
    .action((_options: object, command: Command) =>
      run(async () => {
        const session = openSession(command, terminal);
        const answer = await session.api.cancellations(session.tenant);
        session.show(answer, () =>
          answer.cancellations.length === 0
            ? 'No cancellations.'
            : table(
                COLUMNS,
                answer.cancellations.map((each) => row(each, terminal.clock.now())),
                terminal.columns,
              ),
        );
        return EXIT.ok;
      }),
    );
  cancellation
    .command('get')
    .description('How far a cancellation has come')
    .argument('<id>')
    .option('--wait', 'show the progress until the end; exit code 1 when a task failed to be cancelled')
    .action((id: string, { wait = false }: { wait?: boolean }, command: Command) =>
      run(async () => {
        const session = openSession(command, terminal);
        return followed(session, await session.api.cancellation(id), wait);
      }),
    );
  for (const [wish, description] of [
    ['pause', 'Hold a cancellation up'],
    ['resume', 'Let a paused cancellation go on'],
    ['abort', 'End a cancellation; what it has cancelled stays so'],
  ] as const)
    cancellation
      .command(wish)
      .description(description)
      .argument('<id>')
      .action((id: string, _options: object, command: Command) =>
        run(async () => {
          const session = openSession(command, terminal);
          const answer = await session.api.controlCancellation(id, wish);
          session.show(answer, () => line(answer));
          return EXIT.ok;
        }),
      );
}

/** Shows the cancellation; with `wait`, each step of its progress until the end. */
async function followed(session: Session, first: CancellationAnswer, wait: boolean): Promise<ExitCode> {
  let current = first;
  let shown = '';
  while (wait && (current.state === 'running' || current.state === 'paused')) {
    const now = line(current);
    if (!session.json && now !== shown) session.terminal.out(`${now}\n`);
    shown = now;
    await session.terminal.pause(LOOK_AGAIN_MS);
    current = await session.api.cancellation(current.id);
  }
  session.show(current, () => line(current));
  return wait && (current.state === 'aborted' || current.progress.failed > 0) ? EXIT.taskFailed : EXIT.ok;
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

const dryRunText = ({ count, atLeast, sample }: CancellationDryRun, { clock, columns }: Terminal): string =>
  count === 0
    ? 'No task matches.'
    : `${taskTable(sample, { now: clock.now(), width: columns })}\n${atLeast ? 'At least ' : ''}${count} would be cancelled${count > sample.length ? `, of which the newest ${sample.length} are shown` : ''}.`;
