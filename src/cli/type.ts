import type { Command } from 'commander';
import type { TypeAnswer } from './answers.ts';
import { durationMs, inSession, wholeNumber } from './connection.ts';
import {
  type NumberOrNone,
  numberOrNone,
  present,
  type RateOptions,
  rateText,
  submissionPatch,
} from './settings.ts';
import { type Column, facts, table } from './table.ts';
import type { Run, Terminal } from './terminal.ts';
import { duration } from './time.ts';

const COLUMNS: readonly Column[] = [
  { title: 'TYPE' },
  { title: 'PRIORITY', align: 'right' },
  { title: 'RETRIES', align: 'right' },
  { title: 'TIMEOUT', align: 'right' },
  { title: 'BACKLOG', align: 'right' },
  { title: 'BACKOFF', flexible: true },
];

interface SetOptions extends RateOptions {
  readonly priority?: NumberOrNone;
  readonly maxBacklog?: NumberOrNone;
  readonly maxRetries?: number;
  readonly concurrency?: NumberOrNone;
  readonly concurrencyKeyLimit?: NumberOrNone;
  readonly timeout?: number;
  readonly notRetryable?: string[];
}

export function addTypeCommands(program: Command, terminal: Terminal, run: Run): void {
  const act = inSession(terminal, run);
  const type = program.command('type').description('Settings of task types');
  type
    .command('list')
    .description('Types that have settings')
    .action((_options: object, command: Command) =>
      act(command, async (session) => {
        const answer = await session.api.types();
        session.show(answer, () =>
          answer.types.length === 0
            ? 'No type has settings; all use the defaults.'
            : table(COLUMNS, answer.types.map(row), terminal.columns),
        );
      }),
    );
  type
    .command('set')
    .description('Change settings of a type; what is not given stays, "none" goes back to the default')
    .argument('<type>')
    .option('--priority <n>', 'of tasks that name none', numberOrNone)
    .option('--max-backlog <n>', 'waiting tasks above which submission answers 429', numberOrNone)
    .option('--concurrency <n>', 'tasks of all tenants handed out or running at one time', numberOrNone)
    .option('--concurrency-key-limit <n>', 'the same for tasks of one concurrency key', numberOrNone)
    .option('--submit-rate <n>', 'tasks of the type that each tenant may submit a second', numberOrNone)
    .option('--submit-burst <n>', 'how many of them may come together', numberOrNone)
    .option('--max-retries <n>', 'retries after the first attempt', wholeNumber)
    .option('--timeout <duration>', 'limit of one attempt', durationMs)
    .option('--not-retryable <error...>', 'error names or codes that end a task at once')
    .action((name: string, options: SetOptions, command: Command) =>
      act(command, async (session) => {
        const patch = patchOf(options);
        if (Object.keys(patch).length === 0)
          command.error('error: nothing to set: give at least one option', { code: 'taskledger.nothing' });
        const answer = await session.api.patchType(name, patch);
        session.show(answer, () => typeText(answer, terminal));
      }),
    );
  type
    .command('show')
    .description('Policy and limits of a type')
    .argument('<type>')
    .action((name: string, _options: object, command: Command) =>
      act(command, async (session) => {
        const answer = await session.api.type(name);
        session.show(answer, () => typeText(answer, terminal));
      }),
    );
}

function patchOf(options: SetOptions): object {
  const { priority, maxBacklog, maxRetries, timeout, notRetryable, concurrency, concurrencyKeyLimit } =
    options;
  const policy = present({ maxRetries, timeoutMs: timeout, notRetryable });
  return {
    ...present({ priority, maxBacklog, concurrency, concurrencyKeyLimit }),
    ...(Object.keys(policy).length === 0 ? {} : { policy }),
    ...submissionPatch(options),
  };
}

function typeText(type: TypeAnswer, { columns }: Terminal): string {
  const { policy, submission } = type;
  return facts(
    [
      ['Type', type.type],
      ['Priority', String(type.priority ?? 'default')],
      ['Retries', String(policy?.maxRetries ?? 'default')],
      ['Timeout', policy?.timeoutMs === undefined ? 'default' : duration(policy.timeoutMs)],
      ['Backoff', policy?.backoff === undefined ? 'default' : JSON.stringify(policy.backoff)],
      ['Not retryable', policy?.notRetryable?.join(', ')],
      ['Backlog', String(type.maxBacklog ?? 'default')],
      ['Concurrency', String(type.concurrency ?? 'no limit')],
      ['Of one key', String(type.concurrencyKeyLimit ?? 1)],
      ['Submission rate', rateText(submission) ?? 'no limit'],
    ],
    columns,
  );
}

const row = ({ type, priority, policy, maxBacklog }: TypeAnswer): string[] => [
  type,
  String(priority ?? 'default'),
  String(policy?.maxRetries ?? 'default'),
  policy?.timeoutMs === undefined ? 'default' : duration(policy.timeoutMs),
  String(maxBacklog ?? 'default'),
  policy?.backoff === undefined ? 'default' : JSON.stringify(policy.backoff),
];
