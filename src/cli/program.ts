import { Command, CommanderError } from 'commander';
import { TaskledgerError } from '../domain/errors.ts';
import { addBackupCommand } from './backup.ts';
import { addCancellationCommands } from './cancellation.ts';
import { ENVIRONMENT, withCommonOptions } from './connection.ts';
import { addDeadCommands } from './dead.ts';
import { addKeyCommands } from './key.ts';
import { addProjectionCommands } from './projection.ts';
import { addQueueCommands } from './queue.ts';
import { addReplayCommands } from './replay.ts';
import { Refusal } from './request.ts';
import { addRestoreCommand } from './restore.ts';
import { addScheduleCommands } from './schedule.ts';
import { facts } from './table.ts';
import { addTaskCommands } from './task.ts';
import { addTenantCommands } from './tenant.ts';
import { EXIT, type ExitCode, type Run, type Terminal } from './terminal.ts';
import { addTypeCommands } from './type.ts';
import { addWorkerCommands } from './worker.ts';

/** Runs one command line (without node and script) and resolves with its exit code. Nothing is thrown. */
export async function runCommandLine(args: readonly string[], terminal: Terminal): Promise<ExitCode> {
  let exit: ExitCode = EXIT.ok;
  const run: Run = async (action) => {
    exit = await action();
  };
  const program = withCommonOptions(new Command('taskledger'))
    .description('Submit background tasks, look at them, run the installation')
    .showSuggestionAfterError()
    .showHelpAfterError('(add --help for more)')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.out(text),
      writeErr: (text) => terminal.err(text),
      getOutHelpWidth: () => helpWidth(terminal),
      getErrHelpWidth: () => helpWidth(terminal),
    });
  for (const add of [
    addTaskCommands,
    addDeadCommands,
    addReplayCommands,
    addCancellationCommands,
    addQueueCommands,
    addWorkerCommands,
    addScheduleCommands,
    addTypeCommands,
    addKeyCommands,
    addTenantCommands,
    addProjectionCommands,
    addBackupCommand,
    addRestoreCommand,
  ]) {
    add(program, terminal, run);
  }
  program.addHelpText(
    'after',
    '\nExit codes: 0 done, 1 the awaited task did not complete, 2 usage,\n3 refused, 4 the server cannot be reached.',
  );
  try {
    await program.parseAsync(args, { from: 'user' });
    return exit;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    return explain(error, terminal, args.includes('--json'));
  }
}

const helpWidth = ({ columns }: Terminal): number => (Number.isFinite(columns) ? columns : 80);

/** What the server says to those who write the request themselves helps nobody here. */
const NAME_THE_TENANT = `Give --tenant <tenant>, or set ${ENVIRONMENT.tenant.name}.`;

/** Says what went wrong: code, cause, next step. */
function explain(error: unknown, terminal: Terminal, json: boolean): ExitCode {
  const { code, field, reasons, doc, ...said } = describe(error);
  const fix = code === 'request_invalid' && field === 'tenant' ? NAME_THE_TENANT : said.fix;
  const message = error instanceof Error ? error.message : String(error);
  if (json) {
    terminal.err(`${JSON.stringify({ error: { code, message, field, fix, reasons, doc } })}\n`);
  } else {
    const lines = facts(
      [
        ['error', `${code}: ${message}`],
        ['field', field],
        ...reasons.map((reason) => ['reason', reason.message] as const),
        ['next', fix],
        ['doc', doc],
      ],
      // An error is read in full, however narrow the terminal is.
      Number.POSITIVE_INFINITY,
    );
    terminal.err(`${lines}\n`);
  }
  return isRefusal(error) ? EXIT.refused : EXIT.unreachable;
}

/** What commands that reach no API refuse is no outage either. */
const isRefusal = (error: unknown): boolean =>
  error instanceof Refusal || (error instanceof TaskledgerError && error.status < 500);

function describe(error: unknown): Pick<Refusal, 'code' | 'fix' | 'field' | 'reasons' | 'doc'> {
  if (error instanceof Refusal) return error;
  const known =
    error instanceof TaskledgerError ? error : new TaskledgerError('internal', {}, { cause: error });
  return { code: known.code, fix: known.fix, field: known.field, reasons: [], doc: undefined };
}
