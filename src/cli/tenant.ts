import type { Command } from 'commander';
import { openSession } from './connection.ts';
import { type Column, table } from './table.ts';
import { EXIT, type ExitCode, type Terminal } from './terminal.ts';
import { relative } from './time.ts';

const COLUMNS: readonly Column[] = [
  { title: 'TENANT' },
  { title: 'NAME', flexible: true },
  { title: 'CREATED', align: 'right' },
];

export function addTenantCommands(
  program: Command,
  terminal: Terminal,
  run: (action: () => Promise<ExitCode>) => Promise<void>,
): void {
  const tenant = program.command('tenant').description("Tenants (with an operator's key)");
  tenant
    .command('create')
    .description('Make a tenant')
    .argument('<tenant>', '1 to 63 of a-z, 0-9, "_" and "-"')
    .option('--name <text>', 'name to show')
    .action((name: string, options: { name?: string }, command: Command) =>
      run(async () => {
        const session = openSession(command, terminal);
        const answer = await session.api.createTenant(name, { displayName: options.name });
        session.show(answer, () => `${answer.name}  created`);
        return EXIT.ok;
      }),
    );
  tenant
    .command('list')
    .description('All tenants')
    .action((_options: object, command: Command) =>
      run(async () => {
        const session = openSession(command, terminal);
        const answer = await session.api.tenants();
        const now = terminal.clock.now();
        session.show(answer, () =>
          table(
            COLUMNS,
            answer.tenants.map(({ name, displayName, createdAt }) => [
              name,
              displayName ?? '',
              relative(createdAt, now),
            ]),
            terminal.columns,
          ),
        );
        return EXIT.ok;
      }),
    );
}
