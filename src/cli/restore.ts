import { type Command, InvalidArgumentError } from 'commander';
import type { RestorePlan } from '../backup/restore.ts';
import { sparingly } from '../platform/patience.ts';
import { closing, connection, reporting } from './backup.ts';
import type { CommonOptions } from './connection.ts';
import { EXIT, type Run, type Terminal } from './terminal.ts';

interface RestoreOptions extends CommonOptions {
  readonly nats?: string;
  readonly only?: readonly string[];
  readonly replaceEmpty?: boolean;
  readonly dryRun?: boolean;
}

const ABOUT_ONLY = `
With --only the servers keep all else. What is restored alone is as old as the
backup, beside others that are not: keys revoked since are valid again, pauses
and limits are as they were; --dry-run says it for each name. TASKS comes with
HISTORY only, and while nothing runs. Of all others running processes hear
within seconds. What exists and holds something is never overwritten.`;

export function addRestoreCommand(program: Command, terminal: Terminal, run: Run): void {
  program
    .command('restore')
    .description('Make the streams of a backup, on servers without them, while nothing runs')
    .argument('<dir>', 'the folder of a backup')
    .option('--only <names>', 'these streams and buckets alone, such as types,keys', listOf)
    .option('--replace-empty', 'delete those that exist and hold nothing, and make them from the backup')
    .option('--dry-run', 'only check the backup and the servers, and say what would be done')
    .option('--nats <url>', 'NATS servers (NATS_URL)')
    .addHelpText('after', ABOUT_ONLY)
    .action((dir: string, _options: object, command: Command) =>
      run(async () => {
        const options: RestoreOptions = command.optsWithGlobals();
        const { only, replaceEmpty = false, dryRun = false, json = false } = options;
        const parts = { ...(await connection(terminal, options)), dir, only, replaceEmpty };
        const { planRestore, carryOut } = await import('../backup/restore.ts');
        const { behindBy } = await import('../backup/behind.ts');
        const behind = (stream: string): string => behindBy(stream, parts.names);
        const plan = await closing(parts, async () => {
          const made = await planRestore(parts);
          if (dryRun) return made;
          if (!json) terminal.err(`${planText(made, behind)}\n`);
          await carryOut(made, { ...parts, ...(json ? {} : progressTo(terminal)) });
          return made;
        });
        if (json) terminal.out(`${JSON.stringify(planJson(plan, { ...parts, dryRun, behind }), null, 2)}\n`);
        else terminal.out(`${dryRun ? planText(plan, behind) : doneText(plan, only)}\n`);
        return EXIT.ok;
      }),
    );
}

function listOf(text: string, before: readonly string[] = []): readonly string[] {
  const names = text.split(',').map((name) => name.trim());
  if (names.includes('')) throw new InvalidArgumentError('names are expected, such as types,keys.');
  return [...before, ...names];
}

const progressTo = (terminal: Terminal) => {
  const say = sparingly((text: string) => terminal.err(text));
  return {
    onStream: reporting(terminal),
    onProgress: ({ name, bytes: all }: { name: string; bytes: number }, bytes: number) => {
      if (bytes < all) say(`${name}: ${bytes} of ${all} bytes\n`);
    },
  };
};

function planText({ takenAt, steps, warnings }: RestorePlan, behind: (stream: string) => string): string {
  return [
    `the backup is of ${takenAt}`,
    ...steps.flatMap(({ stream: { name, messages, bytes }, replaces }) => [
      `${name}: ${messages} messages, ${bytes} bytes; ${replaces ? 'is there, empty, and will be REPLACED' : 'will be made'}`,
      `  behind by: ${behind(name)}`,
    ]),
    ...warnings.map((warning) => `WARNING: ${warning}`),
  ].join('\n');
}

const planJson = (
  { takenAt, steps, warnings }: RestorePlan,
  { dir, dryRun, behind }: { dir: string; dryRun: boolean; behind: (stream: string) => string },
) => ({
  dir,
  takenAt,
  dryRun,
  streams: steps.map(({ stream: { name, messages, bytes, firstSeq, lastSeq }, replaces }) => ({
    name,
    messages,
    bytes,
    firstSeq,
    lastSeq,
    replaces,
    behindBy: behind(name),
  })),
  warnings,
});

const doneText = ({ takenAt, steps }: RestorePlan, only: readonly string[] | undefined): string =>
  only === undefined
    ? `${steps.length} streams as of ${takenAt}; now start the installation, and rebuild read models that are not new`
    : `${steps.length} streams as of ${takenAt}; processes that run hear of it within seconds`;
