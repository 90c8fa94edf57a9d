import type { Command } from 'commander';
import type { Status } from '../domain/events.ts';
import { RUNNING, WAITING } from '../domain/task.ts';
import type { QueueAnswer } from './answers.ts';
import { openSession } from './connection.ts';
import { type Column, table } from './table.ts';
import { EXIT, type ExitCode, type Terminal } from './terminal.ts';

const COLUMNS: readonly Column[] = [
  { title: 'TENANT' },
  { title: 'TYPE', flexible: true },
  { title: 'WAITING', align: 'right' },
  { title: 'RUNNING', align: 'right' },
  { title: 'COMPLETED', align: 'right' },
  { title: 'DEAD', align: 'right' },
  { title: 'CANCELLED', align: 'right' },
  { title: 'INTAKE' },
];

export function addQueueCommands(
  program: Command,
  terminal: Terminal,
  run: (action: () => Promise<ExitCode>) => Promise<void>,
): void {
  program
    .command('queue')
    .description('How many tasks there are')
    .command('list')
    .description('Tasks by tenant and type')
    .option('--type <type>')
    .action((options: { type?: string }, command: Command) =>
      run(async () => {
        const session = openSession(command, terminal);
        const answer = await session.api.queues({ tenant: session.tenant, type: options.type });
        session.show(answer, () =>
          answer.queues.length === 0
            ? 'No tasks yet.'
            : table(COLUMNS, answer.queues.map(row), terminal.columns),
        );
        return EXIT.ok;
      }),
    );
}

function row({ tenant, type, counts, backlog }: QueueAnswer): string[] {
  const sum = (statuses: Iterable<Status>): string =>
    String([...statuses].reduce((total, status) => total + (counts[status] ?? 0), 0));
  return [
    tenant,
    type,
    sum(WAITING),
    sum(RUNNING),
    sum(['COMPLETED']),
    sum(['DEAD_LETTER']),
    sum(['CANCELLED']),
    backlog.full ? 'throttled' : 'open',
  ];
}
