import type { Command } from 'commander';
import type { Status } from '../domain/events.ts';
import { RUNNING, WAITING } from '../domain/task.ts';
import type { QueueAnswer } from './answers.ts';
import { inSession, instantOrAge, POINT } from './connection.ts';
import { addPauseCommands, scopeText } from './pause.ts';
import { type Column, table } from './table.ts';
import type { Run, Terminal } from './terminal.ts';
import { relative } from './time.ts';

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

const PAUSE_COLUMNS: readonly Column[] = [
  { title: 'PAUSED' },
  { title: 'REASON', flexible: true },
  { title: 'UNTIL', align: 'right' },
  { title: 'BY' },
  { title: 'SINCE', align: 'right' },
];

export function addQueueCommands(program: Command, terminal: Terminal, run: Run): void {
  const act = inSession(terminal, run);
  const queue = program.command('queue').description('How many tasks there are, and what holds them up');
  queue
    .command('list')
    .description('Tasks by tenant and type')
    .option('--type <type>')
    .option('--at <point>', `as of then: ${POINT}`, instantOrAge(terminal))
    .action((options: { type?: string; at?: string | number }, command: Command) =>
      act(command, async (session) => {
        const answer = await session.api.queues({
          tenant: session.tenant,
          type: options.type,
          at: options.at,
        });
        session.show(answer, () =>
          answer.queues.length === 0
            ? 'No tasks yet.'
            : [
                table(COLUMNS, answer.queues.map(row), terminal.columns),
                ...new Set(
                  answer.queues.flatMap(({ intake }) => intake.reasons.map(({ sentence }) => sentence)),
                ),
              ].join('\n'),
        );
      }),
    );
  queue
    .command('pauses')
    .description('What is paused, by whom, why and until when')
    .action((_options: object, command: Command) =>
      act(command, async (session) => {
        const answer = await session.api.pauses();
        const now = terminal.clock.now();
        session.show(answer, () =>
          answer.pauses.length === 0
            ? 'Nothing is paused.'
            : table(
                PAUSE_COLUMNS,
                answer.pauses.map((pause) => [
                  scopeText(pause),
                  pause.reason,
                  pause.until === null ? 'resumed' : relative(pause.until, now),
                  pause.actor,
                  relative(pause.at, now),
                ]),
                terminal.columns,
              ),
        );
      }),
    );
  addPauseCommands(queue, terminal, run, 'type');
}

function row({ tenant, type, counts, intake, pauses }: QueueAnswer): string[] {
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
    pauses.length > 0 ? `${intake.state}, paused` : intake.state,
  ];
}
