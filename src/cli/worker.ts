import type { Command } from 'commander';
import type { WorkerAnswer } from './answers.ts';
import { inSession } from './connection.ts';
import { type Column, table } from './table.ts';
import type { Run, Terminal } from './terminal.ts';

const COLUMNS: readonly Column[] = [
  { title: 'WORKER' },
  { title: 'TYPES', flexible: true },
  { title: 'RUNS', align: 'right' },
  { title: 'STATE' },
  { title: 'LAST SEEN' },
  { title: 'SDK' },
  { title: 'RELEASE' },
];

export function addWorkerCommands(program: Command, terminal: Terminal, run: Run): void {
  const act = inSession(terminal, run);
  program
    .command('worker')
    .description('Who runs tasks')
    .command('list')
    .description('Registered workers, with the slots they have taken')
    .option('--type <type>')
    .action((options: { type?: string }, command: Command) =>
      act(command, async (session) => {
        const answer = await session.api.workers({ type: options.type });
        session.show(answer, () =>
          answer.workers.length === 0
            ? 'No worker is registered.'
            : table(COLUMNS, answer.workers.map(row), terminal.columns),
        );
      }),
    );
}

const row = ({
  id,
  types,
  running,
  slots,
  alive,
  degraded,
  seenAt,
  version,
  workerVersion,
}: WorkerAnswer): string[] => [
  id,
  types.join(', '),
  `${running}/${slots}`,
  degraded ?? (alive ? 'live' : 'silent'),
  seenAt,
  version,
  workerVersion ?? '',
];
