import { type Command, Option } from 'commander';
import type { KeyAnswer } from './answers.ts';
import { inSession } from './connection.ts';
import { type Column, table } from './table.ts';
import type { Run, Terminal } from './terminal.ts';
import { relative } from './time.ts';

const COLUMNS: readonly Column[] = [
  { title: 'KEY' },
  { title: 'TENANT' },
  { title: 'NAME', flexible: true },
  { title: 'SCOPES' },
  { title: 'CREATED', align: 'right' },
  { title: 'STATE' },
];

export function addKeyCommands(program: Command, terminal: Terminal, run: Run): void {
  const act = inSession(terminal, run);
  const key = program.command('key').description('API keys');
  key
    .command('create')
    .description('Make a key; its text is shown this once')
    .argument('<name>', 'what it is for')
    .addOption(
      new Option('--scope <scope...>', 'what it may do')
        .choices(['submit', 'read', 'admin'])
        .default(['submit', 'read']),
    )
    .action((name: string, options: { scope: string[] }, command: Command) =>
      act(command, async (session) => {
        const made = await session.api.createKey({ name, scopes: options.scope, tenant: session.tenant });
        session.show(made, () => `${made.key}\n\nKeep it: it is stored as a hash and cannot be shown again.`);
      }),
    );
  key
    .command('list')
    .description('Keys, without their text')
    .action((_options: object, command: Command) =>
      act(command, async (session) => {
        const answer = await session.api.keys(session.tenant);
        const now = terminal.clock.now();
        session.show(answer, () =>
          table(
            COLUMNS,
            answer.keys.map((each) => row(each, now)),
            terminal.columns,
          ),
        );
      }),
    );
  key
    .command('revoke')
    .description('End a key for good')
    .argument('<id>', 'as "key list" shows it')
    .action((id: string, _options: object, command: Command) =>
      act(command, async (session) => {
        await session.api.revokeKey(id);
        session.show({ id, revoked: true }, () => `${id}  revoked`);
      }),
    );
}

const row = ({ id, tenant, name, scopes, createdAt, revokedAt }: KeyAnswer, now: number): string[] => [
  id,
  tenant,
  name,
  scopes.join(','),
  relative(createdAt, now),
  revokedAt === null ? 'valid' : 'revoked',
];
