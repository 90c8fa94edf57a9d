import type { Command } from 'commander';
import type { LetterAnswer, LetterFilter, LetterGroupAnswer } from './answers.ts';
import { inSession, instantOrAge, type Session, wholeNumber } from './connection.ts';
import { type Column, facts, printable, table, tableOfTenants } from './table.ts';
import type { Run, Terminal } from './terminal.ts';
import { instant, relative } from './time.ts';

const LETTER_COLUMNS: readonly Column[] = [
  { title: 'TASK' },
  { title: 'TYPE' },
  { title: 'STATE' },
  { title: 'REASON' },
  { title: 'GROUP' },
  { title: 'ERROR', flexible: true },
  { title: 'DIED', align: 'right' },
];
const GROUP_COLUMNS: readonly Column[] = [
  { title: 'GROUP' },
  { title: 'TYPE' },
  { title: 'OPEN', align: 'right' },
  { title: 'REPLAYED', align: 'right' },
  { title: 'DISCARDED', align: 'right' },
  { title: 'TENANTS', align: 'right' },
  { title: 'ERROR', flexible: true },
  { title: 'LAST', align: 'right' },
];

export interface LetterOptions {
  readonly type?: string;
  readonly group?: string;
  readonly reason?: string;
  readonly workerVersion?: string;
  readonly from?: string | number;
  readonly to?: string | number;
}

/** The options that find dead letters, for every command that takes a filter. */
export const withLetterOptions = (command: Command, terminal: Terminal): Command =>
  command
    .option('--type <type>')
    .option('--group <fingerprint>', 'those that died of the same error (see: dead groups)')
    .option('--reason <reason>', 'retries, not_retryable, deadline or poison')
    .option('--worker-version <version>', 'release of the worker that failed last')
    .option(
      '--from <when>',
      'died since then: an instant (ISO 8601), or this long ago (2h)',
      instantOrAge(terminal),
    )
    .option('--to <when>', 'died before then', instantOrAge(terminal));

export const letterFilterOf = (options: LetterOptions, tenant: string | undefined): LetterFilter => ({
  tenant,
  type: options.type,
  fingerprint: options.group,
  reason: options.reason,
  workerVersion: options.workerVersion,
  deadFrom: options.from,
  deadTo: options.to,
});

interface ListOptions extends LetterOptions {
  readonly state: string;
  readonly limit: number;
  readonly cursor?: string;
}

interface GroupsOptions {
  readonly type?: string;
  readonly group?: string;
  readonly all?: boolean;
  readonly limit: number;
  readonly cursor?: string;
}

export function addDeadCommands(program: Command, terminal: Terminal, run: Run): void {
  const act = inSession(terminal, run);
  const dead = program.command('dead').description('Look into the dead-letter queues');

  withLetterOptions(dead.command('list').description('Tasks that died, the last death first'), terminal)
    .option('--state <state>', 'open, replayed, discarded or all', 'open')
    .option('--limit <n>', 'tasks on a page', wholeNumber, 20)
    .option('--cursor <cursor>', 'the page after the one that printed it')
    .action((options: ListOptions, command: Command) =>
      act(command, async (session) => {
        const { state, limit, cursor } = options;
        const page = await session.api.deadLetters({
          ...letterFilterOf(options, session.tenant),
          state: state === 'all' ? undefined : state,
          limit,
          cursor,
        });
        session.show(page, () =>
          page.deadLetters.length === 0
            ? `No ${state === 'all' ? '' : `${state} `}dead letter matches.`
            : `${letterTable(page.deadLetters, session)}${page.nextCursor === null ? '' : `\nMore: --cursor ${page.nextCursor}`}`,
        );
      }),
    );

  dead
    .command('groups')
    .description('Dead letters by what their errors have in common')
    .option('--type <type>')
    .option('--group <fingerprint>', 'this one only')
    .option('--all', 'also groups that nobody needs to look at any more')
    .option('--limit <n>', 'groups on a page', wholeNumber, 20)
    .option('--cursor <cursor>', 'the page after the one that printed it')
    .action((options: GroupsOptions, command: Command) =>
      act(command, async (session) => {
        const { type, group: fingerprint, all, limit, cursor } = options;
        const page = await session.api.deadLetterGroups({
          tenant: session.tenant,
          type,
          fingerprint,
          limit,
          cursor,
          all: all ? 'true' : undefined,
        });
        session.show(page, () =>
          page.groups.length === 0
            ? 'No group of dead letters.'
            : `${table(
                GROUP_COLUMNS,
                page.groups.map((group) => groupRow(group, terminal)),
                terminal.columns,
              )}${page.nextCursor === null ? '' : `\nMore: --cursor ${page.nextCursor}`}`,
        );
      }),
    );

  dead
    .command('show')
    .description('Why a task died, and what became of it since')
    .argument('<id>')
    .action((id: string, _options: object, command: Command) =>
      act(command, async (session) => {
        const answer = await session.api.deadLetter(id, session.tenant);
        session.show(answer, () => letterText(answer.deadLetter, terminal));
      }),
    );

  dead
    .command('discard')
    .description('Give a dead letter up for good: it stays in the list, and is never replayed')
    .argument('<id>')
    .requiredOption('--reason <text>', 'kept in the history')
    .action((id: string, { reason }: { reason: string }, command: Command) =>
      act(command, async (session) => {
        const answer = await session.api.discard(id, { tenant: session.tenant, reason });
        session.show(answer, () => `${answer.id}  discarded`);
      }),
    );
}

const errorText = ({ error, reason }: LetterAnswer): string =>
  error === null ? `(${reason})` : `${error.name}: ${error.message}`;

export const letterTable = (
  letters: readonly LetterAnswer[],
  { tenant, terminal }: Pick<Session, 'tenant' | 'terminal'>,
): string =>
  tableOfTenants(
    LETTER_COLUMNS,
    letters.map((letter) => letterRow(letter, terminal)),
    { tenant, width: terminal.columns },
  );

const letterRow = (letter: LetterAnswer, { clock }: Terminal): [tenant: string, ...cells: string[]] => [
  letter.tenant,
  letter.id,
  letter.type,
  letter.state,
  letter.reason,
  letter.fingerprint,
  errorText(letter),
  relative(letter.deadAt, clock.now()),
];

const groupRow = (group: LetterGroupAnswer, { clock }: Terminal): string[] => [
  group.fingerprint,
  group.type,
  String(group.open),
  String(group.replayed),
  String(group.discarded),
  String(group.tenants.length),
  `${group.errorName}: ${group.shape}`,
  relative(group.lastSeenAt, clock.now()),
];

function letterText(letter: LetterAnswer, { clock, columns }: Terminal): string {
  const now = clock.now();
  const { settledAt, settledBy, firstFailedAt, error } = letter;
  const shown = facts(
    [
      ['Task', letter.id],
      ['Type', letter.type],
      ['Tenant', letter.tenant],
      ['State', letter.state],
      ['Reason', letter.reason],
      ['Group', letter.fingerprint],
      ['Error', error === null ? undefined : errorText(letter)],
      ['Code', error?.code],
      ['Worker', letter.worker ?? undefined],
      ['Version', letter.workerVersion ?? undefined],
      ['Attempts', letter.round > 1 ? `${letter.attempt} (round ${letter.round})` : String(letter.attempt)],
      ['First failed', firstFailedAt === null ? undefined : instant(firstFailedAt, now)],
      ['Died', instant(letter.deadAt, now)],
      [
        letter.state === 'discarded' ? 'Discarded' : 'Replayed',
        settledAt === null ? undefined : instant(settledAt, now),
      ],
      ['By', settledBy ?? undefined],
      ['Note', letter.note ?? undefined],
    ],
    columns,
  );
  const stack = error?.stack?.split('\n').slice(1) ?? [];
  return [shown, ...stack.map((line) => printable(line))].join('\n');
}
