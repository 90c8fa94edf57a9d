import type { Command } from 'commander';
import type { PolicyOverride } from '../domain/policy.ts';
import type { DryRunAnswer, ReplayAnswer } from './answers.ts';
import { openSession, type Session, wholeNumber } from './connection.ts';
import { type LetterOptions, letterFilterOf, letterTable, withLetterOptions } from './dead.ts';
import { addOperationCommands, followed, type OperationKind } from './operation.ts';
import { readPayload } from './payload.ts';
import { numberAboveZero } from './settings.ts';
import { type Column, facts } from './table.ts';
import { EXIT, type Run, type Terminal } from './terminal.ts';
import { duration, instant, relative } from './time.ts';

interface StartOptions extends LetterOptions {
  readonly all?: boolean;
  readonly dryRun?: boolean;
  readonly rate?: number;
  readonly payload?: string;
  readonly maxRetries?: number;
  readonly note?: string;
  readonly wait?: boolean;
}

export function addReplayCommands(program: Command, terminal: Terminal, run: Run): void {
  const replay = program.command('replay').description('Give tasks that died another round of attempts');

  withLetterOptions(
    replay
      .command('start')
      .description('Replay tasks by id, or the open dead letters that the options find')
      .argument('[ids...]', 'task ids'),
    terminal,
  )
    .option('--all', 'every open dead letter, when no other option narrows')
    .option('--dry-run', 'only show how many there are, and some of them')
    .option('--rate <n>', 'tasks a second at most; 0.5 is one in two', numberAboveZero)
    .option('--payload <json>', "instead of each task's own; @file reads a file, - reads standard input")
    .option('--max-retries <n>', 'retries after the first attempt of the round', wholeNumber)
    .option('--note <text>', 'kept in the history of each task')
    .option('--wait', 'show the progress until the end; exit code 1 when a task failed to be replayed')
    .action((ids: string[], options: StartOptions, command: Command) =>
      run(async () => {
        const session = openSession(command, terminal);
        const { dryRun, wait } = options;
        const answer = await session.api.startReplay(await wishOf(ids, options, session, command));
        if (dryRun) {
          const found = answer as DryRunAnswer;
          session.show(found, () => dryRunText(found, session));
          return EXIT.ok;
        }
        return followed(session, REPLAY, { first: answer as ReplayAnswer, wait: wait ?? false });
      }),
    );

  addOperationCommands(replay, REPLAY, { terminal, run });
}

async function wishOf(ids: readonly string[], options: StartOptions, session: Session, command: Command) {
  const { tenant, ...filter } = letterFilterOf(options, session.tenant);
  const narrowed = Object.values(filter).some((value) => value !== undefined);
  if (ids.length > 0 && narrowed)
    command.error('error: give ids or options that find dead letters, not both', {
      code: 'taskledger.replay',
    });
  if (ids.length === 0 && !narrowed && !options.all)
    command.error('error: nothing to replay: give ids, options such as --type, or --all', {
      code: 'taskledger.replay',
    });
  const policy: PolicyOverride | undefined =
    options.maxRetries === undefined ? undefined : { maxRetries: options.maxRetries };
  const payload =
    options.payload === undefined
      ? {}
      : { payload: await readPayload(options.payload, session.terminal, command) };
  return {
    tenant,
    ...(ids.length > 0 ? { ids } : { filter }),
    dryRun: options.dryRun,
    ratePerSecond: options.rate,
    ...payload,
    policy,
    note: options.note,
  };
}

const COLUMNS: readonly Column[] = [
  { title: 'REPLAY' },
  { title: 'TENANT' },
  { title: 'STATE' },
  { title: 'REPLAYED', align: 'right' },
  { title: 'SKIPPED', align: 'right' },
  { title: 'FAILED', align: 'right' },
  { title: 'OF', align: 'right' },
  { title: 'NOTE', flexible: true },
  { title: 'STARTED', align: 'right' },
];

const row = (
  { id, tenant, state, progress, expected, note, createdAt }: ReplayAnswer,
  now: number,
): string[] => [
  id,
  tenant ?? '(all)',
  state,
  String(progress.replayed),
  String(progress.skipped),
  String(progress.failed),
  expected === null ? '?' : String(expected),
  note ?? '',
  relative(createdAt, now),
];

const WIDTH = 20;

/** `[#####.....]  120 of 240  replaying` */
function progressLine({
  id,
  state,
  progress: { matched, replayed, skipped, failed },
  expected,
}: ReplayAnswer): string {
  const part =
    state === 'done' ? 1 : expected === null || expected === 0 ? 0 : Math.min(1, matched / expected);
  const bar = '#'.repeat(Math.floor(part * WIDTH)).padEnd(WIDTH, '.');
  return `${id}  [${bar}]  ${state}: ${replayed} replayed, ${skipped} skipped, ${failed} failed of ${expected ?? '?'}`;
}

function replayText(replay: ReplayAnswer, { clock, columns }: Terminal): string {
  const now = clock.now();
  const { progress, expected, createdAt, updatedAt, actor, changedBy, ratePerSecond } = replay;
  const took = Date.parse(updatedAt) - Date.parse(createdAt);
  return facts(
    [
      ['Replay', replay.id],
      ['State', replay.state === 'done' ? `done, took ${duration(took)}` : replay.state],
      ['Tenant', replay.tenant ?? '(all)'],
      ['Found', expected === null ? undefined : String(expected)],
      ['Replayed', String(progress.replayed)],
      ['Skipped', String(progress.skipped)],
      ['Failed', String(progress.failed)],
      ...progress.failures.map(({ taskId, code }) => ['', `${taskId}: ${code}`] as const),
      ['Rate', ratePerSecond === null ? undefined : `${ratePerSecond}/s`],
      ['Edited', replay.edited.length === 0 ? undefined : replay.edited.join(', ')],
      ['Note', replay.note ?? undefined],
      ['By', actor.id],
      ['Changed by', changedBy?.id],
      ['Started', instant(createdAt, now)],
    ],
    columns,
  );
}

const REPLAY: OperationKind<ReplayAnswer> = {
  noun: 'replay',
  done: 'replayed',
  columns: COLUMNS,
  row,
  line: progressLine,
  text: replayText,
  list: (api, tenant) => api.replays(tenant),
  get: (api, id) => api.replay(id),
  control: (api, id, wish) => api.controlReplay(id, wish),
};

const dryRunText = ({ count, sample }: DryRunAnswer, session: Session): string =>
  count === 0
    ? 'No open dead letter matches.'
    : `${letterTable(sample, session)}\n${count} would be replayed${count > sample.length ? `, of which ${sample.length} are shown` : ''}.`;
