import type { Command } from 'commander';
import type { PolicyOverride } from '../domain/policy.ts';
import type { TypeAnswer } from './answers.ts';
import { durationMs, openSession, wholeNumber } from './connection.ts';
import { type Column, table } from './table.ts';
import { EXIT, type ExitCode, type Terminal } from './terminal.ts';
import { duration } from './time.ts';

const COLUMNS: readonly Column[] = [
  { title: 'TYPE' },
  { title: 'PRIORITY', align: 'right' },
  { title: 'RETRIES', align: 'right' },
  { title: 'TIMEOUT', align: 'right' },
  { title: 'BACKLOG', align: 'right' },
  { title: 'BACKOFF', flexible: true },
];

interface SetOptions {
  readonly priority?: number;
  readonly maxBacklog?: number;
  readonly maxRetries?: number;
  readonly timeout?: number;
  readonly notRetryable?: string[];
}

export function addTypeCommands(
  program: Command,
  terminal: Terminal,
  run: (action: () => Promise<ExitCode>) => Promise<void>,
): void {
  const type = program.command('type').description('Settings of task types');
  type
    .command('list')
    .description('Types that have settings')
    .action((_options: object, command: Command) =>
      run(async () => {
        const session = openSession(command, terminal);
        const answer = await session.api.types();
        session.show(answer, () =>
          answer.types.length === 0
            ? 'No type has settings; all use the defaults.'
            : table(COLUMNS, answer.types.map(row), terminal.columns),
        );
        return EXIT.ok;
      }),
    );
  type
    .command('set')
    .description('Replace the settings of a type; what is not given goes back to the default')
    .argument('<type>')
    .option('--priority <n>', 'of tasks that name none', wholeNumber)
    .option('--max-backlog <n>', 'waiting tasks above which submission answers 429', wholeNumber)
    .option('--max-retries <n>', 'retries after the first attempt', wholeNumber)
    .option('--timeout <duration>', 'limit of one attempt', durationMs)
    .option('--not-retryable <error...>', 'error names or codes that end a task at once')
    .action((name: string, options: SetOptions, command: Command) =>
      run(async () => {
        const session = openSession(command, terminal);
        const answer = await session.api.setType(settingsOf(name, options));
        session.show(answer, () => table(COLUMNS, [row(answer)], terminal.columns));
        return EXIT.ok;
      }),
    );
}

function settingsOf(type: string, options: SetOptions): TypeAnswer {
  const { priority, maxBacklog, maxRetries, timeout, notRetryable } = options;
  const policy: PolicyOverride = {
    ...(maxRetries === undefined ? {} : { maxRetries }),
    ...(timeout === undefined ? {} : { timeoutMs: timeout }),
    ...(notRetryable === undefined ? {} : { notRetryable }),
  };
  return { type, priority, maxBacklog, ...(Object.keys(policy).length === 0 ? {} : { policy }) };
}

const row = ({ type, priority, policy, maxBacklog }: TypeAnswer): string[] => [
  type,
  String(priority ?? 'default'),
  String(policy?.maxRetries ?? 'default'),
  policy?.timeoutMs === undefined ? 'default' : duration(policy.timeoutMs),
  String(maxBacklog ?? 'default'),
  policy?.backoff === undefined ? 'default' : JSON.stringify(policy.backoff),
];
