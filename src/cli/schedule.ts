import type { Command } from 'commander';
import type { ScheduleAnswer, ScheduleWish } from './answers.ts';
import { inSession, type Session, wholeNumber } from './connection.ts';
import { readPayload } from './payload.ts';
import { type Column, facts, table } from './table.ts';
import type { Run, Terminal } from './terminal.ts';
import { instant, relative } from './time.ts';

const COLUMNS: readonly Column[] = [
  { title: 'TENANT' },
  { title: 'NAME', flexible: true },
  { title: 'TYPE' },
  { title: 'TIMING' },
  { title: 'ZONE' },
  { title: 'NEXT', align: 'right' },
];
const SLOT_COLUMNS: readonly Column[] = [{ title: 'UTC' }, { title: 'LOCAL' }];

interface PutOptions extends Omit<ScheduleWish, 'type' | 'payload' | 'timeZone'> {
  readonly zone?: string;
}

export function addScheduleCommands(program: Command, terminal: Terminal, run: Run): void {
  const schedule = program
    .command('schedule')
    .description('Recurring tasks: one for each slot of a schedule');
  addRecordCommands(schedule, terminal, run);
  addControlCommands(schedule, terminal, run);
}

const withName = (schedule: Command, name: string, description: string): Command =>
  schedule.command(name).description(description).argument('<name>');

const showIn =
  (terminal: Terminal) =>
  (session: Session, answer: ScheduleAnswer): void =>
    session.show(answer, () => scheduleText(answer, terminal));

function addRecordCommands(schedule: Command, terminal: Terminal, run: Run): void {
  const act = inSession(terminal, run);
  const show = showIn(terminal);
  schedule
    .command('list')
    .description('All schedules of the tenant')
    .action((_options: object, command: Command) =>
      act(command, async (session) => {
        const answer = await session.api.schedules(session.tenant);
        const rows = answer.schedules.map((each) => row(each, terminal.clock.now()));
        session.show(answer, () =>
          rows.length === 0 ? 'No schedules yet.' : table(COLUMNS, rows, terminal.columns),
        );
      }),
    );

  withName(schedule, 'get', 'Show a schedule').action((name: string, _options: object, command: Command) =>
    act(command, async (session) => show(session, await session.api.schedule(name, session.tenant))),
  );

  withName(schedule, 'put', 'Make a schedule, or replace it; what is not given goes back to the default')
    .argument('<type>', 'type of the tasks')
    .argument('[payload]', 'JSON; @file reads a file, - reads standard input; null when absent')
    .option('--cron <expression>', 'five fields, or six with seconds first')
    .option('--every <duration>', 'instead: elapsed time from slot to slot, such as 15m')
    .option('--zone <zone>', 'IANA time zone of --cron; UTC when absent')
    .option('--overlap <policy>', 'while the task before has not ended: allow, skip or cancel-previous')
    .option('--missed <policy>', 'slots that nobody was there to fire: skip, latest or all')
    .option('--missed-limit <n>', 'with --missed all: the last so many', wholeNumber)
    .option('--priority <n>', '1 is served first, 4 last', wholeNumber)
    .option('--start-at <instant>', 'no slot before (ISO 8601)')
    .option('--end-at <instant>', 'no slot at or after (ISO 8601)')
    .action((name: string, type: string, text: string | undefined, options: PutOptions, command: Command) =>
      act(command, async (session) => {
        const { zone, ...rest } = options;
        const wish = { type, payload: await readPayload(text, terminal, command), timeZone: zone, ...rest };
        show(session, await session.api.putSchedule(name, wish, session.tenant));
      }),
    );

  withName(schedule, 'delete', 'Remove a schedule; its tasks stay').action(
    (name: string, _options: object, command: Command) =>
      act(command, async (session) => {
        await session.api.deleteSchedule(name, session.tenant);
        session.show({ name, deleted: true }, () => `${name}  deleted`);
      }),
  );
}

/** What is done with a schedule as it is. */
function addControlCommands(schedule: Command, terminal: Terminal, run: Run): void {
  const act = inSession(terminal, run);
  const show = showIn(terminal);
  withName(schedule, 'pause', 'Make no tasks until it is resumed')
    .option('--reason <text>', 'shown to whoever looks')
    .action((name: string, options: { reason?: string }, command: Command) =>
      act(command, async (session) =>
        show(session, await session.api.pauseSchedule(name, options.reason, session.tenant)),
      ),
    );

  withName(schedule, 'resume', 'Go on with the next slot').action(
    (name: string, _options: object, command: Command) =>
      act(command, async (session) => show(session, await session.api.resumeSchedule(name, session.tenant))),
  );

  withName(schedule, 'run', 'Submit its task now').action(
    (name: string, _options: object, command: Command) =>
      act(command, async (session) => {
        const submitted = await session.api.runSchedule(name, session.tenant);
        session.show(submitted, () => `${submitted.id}  ${submitted.status}`);
      }),
  );

  withName(schedule, 'next', 'Its next slots')
    .option('--count <n>', 'how many', wholeNumber, 10)
    .action((name: string, { count }: { count: number }, command: Command) =>
      act(command, async (session) => {
        const answer = await session.api.nextSlots(name, { count, tenant: session.tenant });
        session.show(answer, () =>
          answer.slots.length === 0
            ? 'No slot to come.'
            : table(
                SLOT_COLUMNS,
                answer.slots.map(({ at, local }) => [at, local]),
                terminal.columns,
              ),
        );
      }),
    );
}

const timing = ({ cron, every }: ScheduleAnswer): string =>
  cron ?? `every ${typeof every === 'number' ? `${every} ms` : (every ?? '')}`;

const next = ({ paused, nextAt }: ScheduleAnswer, now: number): string =>
  paused === undefined ? (nextAt === null ? 'over' : relative(nextAt, now)) : 'paused';

const row = (answer: ScheduleAnswer, now: number): string[] => [
  answer.tenant,
  answer.name,
  answer.type,
  timing(answer),
  answer.timeZone,
  next(answer, now),
];

function scheduleText(answer: ScheduleAnswer, { clock, columns }: Terminal): string {
  const now = clock.now();
  const { paused, nextAt, changedBy } = answer;
  return facts(
    [
      ['Schedule', answer.name],
      ['Tenant', answer.tenant],
      ['Type', answer.type],
      ['Timing', `${timing(answer)} (${answer.timeZone})`],
      ['Overlap', answer.overlap],
      ['Missed', answer.missed],
      [
        'Version',
        `${answer.version}, ${instant(answer.changedAt, now)} by ${changedBy.kind} ${changedBy.id}`,
      ],
      [
        'Paused',
        paused === undefined ? undefined : `${instant(paused.at, now)} ${paused.reason ?? ''}`.trim(),
      ],
      ['Next', nextAt === null ? undefined : instant(nextAt, now)],
      ['Payload', JSON.stringify(answer.payload)],
    ],
    columns,
  );
}
