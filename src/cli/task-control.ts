import type { Command } from 'commander';
import { inSession, instantOrDelay, openSession, wholeNumber } from './connection.ts';
import { EXIT, type Run, type Terminal } from './terminal.ts';

interface RescheduleOptions {
  readonly priority?: number;
  readonly runAt?: string | number;
  readonly now?: boolean;
}

/** What can be asked of a task that was submitted. */
export function addTaskControlCommands(task: Command, terminal: Terminal, run: Run): void {
  const act = inSession(terminal, run);
  task
    .command('cancel')
    .description('Ask for the cancellation of a task')
    .argument('<id>')
    .option('--reason <text>', 'kept in the history')
    .action((id: string, options: { reason?: string }, command: Command) =>
      act(command, async (session) => {
        const answer = await session.api.cancel(id, { tenant: session.tenant, reason: options.reason });
        session.show(answer, () => `${answer.id}  ${answer.event}`);
      }),
    );

  task
    .command('why')
    .description('Say why a task is not running')
    .argument('<id>')
    .action((id: string, _options: object, command: Command) =>
      act(command, async (session) => {
        const answer = await session.api.why(id, { tenant: session.tenant });
        session.show(answer, () => answer.sentence);
      }),
    );

  task
    .command('reschedule')
    .description('Change the priority or the time of a task that waits')
    .argument('<id>')
    .option('--priority <n>', '1 is served first, 4 last', wholeNumber)
    .option(
      '--run-at <when>',
      'not before this instant (ISO 8601), or this long from now (+5m)',
      instantOrDelay(() => terminal.clock.now()),
    )
    .option('--now', 'no longer wait for a time, the backoff of a retry included')
    .action((id: string, options: RescheduleOptions, command: Command) =>
      run(async () => {
        const { priority, runAt, now } = options;
        if (now && runAt !== undefined)
          command.error('error: give --now or --run-at, not both', { code: 'taskledger.conflict' });
        const session = openSession(command, terminal);
        const change = { priority, runAt: now ? null : runAt };
        const answer = await session.api.reschedule(id, change, { tenant: session.tenant });
        session.show(
          answer,
          () =>
            `${answer.id}  priority ${answer.priority}, ${answer.dueAt === null ? 'as soon as its turn comes' : `due ${answer.dueAt}`}`,
        );
        return EXIT.ok;
      }),
    );
}
