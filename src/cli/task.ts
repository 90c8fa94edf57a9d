import type { Command } from 'commander';
import type { Json } from '../domain/json.ts';
import { TERMINAL } from '../domain/task.ts';
import type { Submission, Task } from './answers.ts';
import {
  durationMs,
  inSession,
  instantOrAge,
  instantOrDelay,
  openSession,
  POINT,
  type Session,
  wholeNumber,
} from './connection.ts';
import { readPayload } from './payload.ts';
import { Refusal } from './request.ts';
import { addTaskControlCommands } from './task-control.ts';
import { eventLine, taskTable, taskText } from './task-text.ts';
import { EXIT, type ExitCode, exitOf, type Run, type Terminal } from './terminal.ts';
import { allEvents, watch } from './watch.ts';

/** Pause between two looks at a task that is waited for, in ms. */
const LOOK_AGAIN_MS = 250;

interface SubmitOptions {
  readonly id?: string;
  readonly priority?: number;
  readonly runAt?: string | number;
  readonly deadlineAt?: string | number;
  readonly orderingKey?: string;
  readonly concurrencyKey?: string;
  readonly maxRetries?: number;
  readonly timeout?: number;
  readonly wait?: boolean;
}

export function addTaskCommands(program: Command, terminal: Terminal, run: Run): void {
  const task = program.command('task').description('Submit tasks, look at them, cancel them');
  addSubmit(task, terminal, run);
  addGet(task, terminal, run);
  addList(task, terminal, run);
  addEvents(task, terminal, run);
  addWatch(task, terminal, run);
  addTaskControlCommands(task, terminal, run);
}

function addSubmit(task: Command, terminal: Terminal, run: Run): void {
  const whenText = instantOrDelay(() => terminal.clock.now());
  task
    .command('submit')
    .description('Submit one task')
    .argument('<type>', 'task type')
    .argument('[payload]', 'JSON; @file reads a file, - reads standard input; null when absent')
    .option('--id <key>', 'idempotency key: a repeat answers with the original task')
    .option('--priority <n>', '1 is served first, 4 last', wholeNumber)
    .option('--run-at <when>', 'not before this instant (ISO 8601), or this long from now (+5m)', whenText)
    .option('--deadline-at <when>', 'to the dead-letter queue unless it has ended by then', whenText)
    .option('--ordering-key <key>', 'one at a time with other tasks of the key, in the order of submission')
    .option('--concurrency-key <key>', 'few at a time with other tasks of the key')
    .option('--max-retries <n>', 'retries after the first attempt', wholeNumber)
    .option('--timeout <duration>', 'limit of one attempt', durationMs)
    .option('--wait', 'wait for the end; exit code 1 unless COMPLETED')
    .action((type: string, payload: string | undefined, options: SubmitOptions, command: Command) =>
      run(async () => {
        const session = openSession(command, terminal);
        const json = await readPayload(payload, terminal, command);
        const submitted = await session.api.submit(submissionOf(type, json, options, session.tenant));
        if (options.wait) return report(session, await whenEnded(session, submitted.id, submitted.seq));
        session.show(
          submitted,
          () => `${submitted.id}  ${submitted.status}${submitted.replayed ? ' (a repeat)' : ''}`,
        );
        return EXIT.ok;
      }),
    );
}

function addGet(task: Command, terminal: Terminal, run: Run): void {
  task
    .command('get')
    .description('Show one task')
    .argument('<id>')
    .option('--wait', 'wait for the end; exit code 1 unless COMPLETED')
    .option('--at <point>', `as of then: ${POINT}`, instantOrAge(terminal))
    .action((id: string, options: { wait?: boolean; at?: string | number }, command: Command) =>
      run(async () => {
        const session = openSession(command, terminal);
        if (options.wait) return report(session, await whenEnded(session, id));
        const answer = await session.api.task(id, { tenant: session.tenant, at: options.at });
        session.show(answer, () => taskText(answer.task, view(terminal)));
        return EXIT.ok;
      }),
    );
}

function addList(task: Command, terminal: Terminal, run: Run): void {
  const act = inSession(terminal, run);
  task
    .command('list')
    .description('List tasks, newest first')
    .option('--type <type>')
    .option('--status <status...>', 'one or more of them')
    .option('--worker <worker>')
    .option('--limit <n>', 'tasks on a page', wholeNumber, 20)
    .option('--cursor <cursor>', 'the page after the one that printed it')
    .action((options: ListOptions, command: Command) =>
      act(command, async (session) => {
        const { status, ...filter } = options;
        const page = await session.api.tasks({
          tenant: session.tenant,
          type: filter.type,
          worker: filter.worker,
          limit: filter.limit,
          cursor: filter.cursor,
          ...(status === undefined ? {} : { status: status.join(',').toUpperCase() }),
        });
        session.show(page, () =>
          page.tasks.length === 0
            ? 'No task matches.'
            : `${taskTable(page.tasks, session)}${moreText(page.nextCursor)}`,
        );
      }),
    );
}

function addEvents(task: Command, terminal: Terminal, run: Run): void {
  const act = inSession(terminal, run);
  task
    .command('events')
    .description("Show a task's history")
    .argument('<id>')
    .action((id: string, _options: object, command: Command) =>
      act(command, async (session) => {
        const events = await allEvents(session, id);
        const sinceMs = Date.parse(events[0]?.storedAt ?? '');
        session.show(events, () =>
          events.map((event) => eventLine(event, { sinceMs, width: terminal.columns })).join('\n'),
        );
      }),
    );
}

function addWatch(task: Command, terminal: Terminal, run: Run): void {
  task
    .command('watch')
    .description('Print the events of a task as they come, until its end; exit code 1 unless COMPLETED')
    .argument('<id>')
    .action((id: string, _options: object, command: Command) =>
      run(() => watch(openSession(command, terminal), id)),
    );
}

interface ListOptions {
  readonly type?: string;
  readonly status?: readonly string[];
  readonly worker?: string;
  readonly limit: number;
  readonly cursor?: string;
}

const view = (terminal: Terminal) => ({ now: terminal.clock.now(), width: terminal.columns });
const moreText = (cursor: string | null): string => (cursor === null ? '' : `\nMore: --cursor ${cursor}`);

function submissionOf(
  type: string,
  payload: Json,
  options: SubmitOptions,
  tenant: string | undefined,
): Submission {
  const { maxRetries, timeout, id, priority, runAt, deadlineAt, orderingKey, concurrencyKey } = options;
  const policy = {
    ...(maxRetries === undefined ? {} : { maxRetries }),
    ...(timeout === undefined ? {} : { timeoutMs: timeout }),
  };
  return {
    type,
    payload,
    idempotencyKey: id,
    priority,
    runAt,
    deadlineAt,
    orderingKey,
    concurrencyKey,
    tenant,
    ...(Object.keys(policy).length === 0 ? {} : { policy }),
  };
}

/** The task once it has ended. A task that was submitted a moment ago (`seq`) may not be in the read model yet. */
async function whenEnded(session: Session, id: string, seq?: number): Promise<Task> {
  for (;;) {
    const task = await session.api.task(id, { tenant: session.tenant, wait: seq }).then(
      (answer) => answer.task,
      (error: unknown) => {
        if (error instanceof Refusal && error.code === 'position_not_reached') return undefined;
        throw error;
      },
    );
    if (task !== undefined && TERMINAL.has(task.status)) return task;
    await session.terminal.pause(LOOK_AGAIN_MS);
  }
}

function report(session: Session, task: Task): ExitCode {
  session.show({ task }, () => taskText(task, view(session.terminal)));
  return exitOf(task.status);
}
