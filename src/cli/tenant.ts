import type { Command } from 'commander';
import type { TenantAnswer } from './answers.ts';
import { inSession } from './connection.ts';
import { addPauseCommands } from './pause.ts';
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
import { instant, relative } from './time.ts';

const COLUMNS: readonly Column[] = [
  { title: 'TENANT' },
  { title: 'NAME', flexible: true },
  { title: 'WEIGHT', align: 'right' },
  { title: 'CREATED', align: 'right' },
];

interface SetOptions extends RateOptions {
  readonly name?: string;
  readonly type?: string;
  readonly weight?: NumberOrNone;
  readonly concurrency?: NumberOrNone;
  readonly rate?: NumberOrNone;
  readonly burst?: NumberOrNone;
  readonly maxBacklog?: NumberOrNone;
}

export function addTenantCommands(program: Command, terminal: Terminal, run: Run): void {
  const tenant = program.command('tenant').description("Tenants (with an operator's key)");
  const act = inSession(terminal, run);
  tenant
    .command('create')
    .description('Make a tenant')
    .argument('<tenant>', '1 to 63 of a-z, 0-9, "_" and "-"')
    .option('--name <text>', 'name to show')
    .action((name: string, options: { name?: string }, command: Command) =>
      act(command, async (session) => {
        const answer = await session.api.createTenant(name, { displayName: options.name });
        session.show(answer, () => `${answer.name}  created`);
      }),
    );
  tenant
    .command('list')
    .description('All tenants')
    .action((_options: object, command: Command) =>
      act(command, async (session) => {
        const answer = await session.api.tenants();
        const now = terminal.clock.now();
        session.show(answer, () =>
          table(
            COLUMNS,
            answer.tenants.map(({ name, displayName, weight, createdAt }) => [
              name,
              displayName ?? '',
              String(weight ?? 1),
              relative(createdAt, now),
            ]),
            terminal.columns,
          ),
        );
      }),
    );
  tenant
    .command('show')
    .description('Weight, limits and rates of a tenant')
    .argument('<tenant>')
    .action((name: string, _options: object, command: Command) =>
      act(command, async (session) => {
        const answer = await session.api.tenant(name);
        session.show(answer, () => tenantText(answer, terminal));
      }),
    );
  tenant
    .command('set')
    .description('Change settings of a tenant; what is not given stays, "none" removes')
    .argument('<tenant>')
    .option('--type <type>', 'what it has of this type, instead of over all types')
    .option('--name <text>', 'name to show')
    .option('--weight <n>', 'share of the workers; 1 is what everybody has', numberOrNone)
    .option('--concurrency <n>', 'tasks handed out or running at one time', numberOrNone)
    .option('--rate <n>', 'tasks handed to the workers a second', numberOrNone)
    .option('--burst <n>', 'how many of them may go together', numberOrNone)
    .option('--submit-rate <n>', 'tasks submitted a second', numberOrNone)
    .option('--submit-burst <n>', 'how many of them may come together', numberOrNone)
    .option('--max-backlog <n>', 'waiting tasks above which submission answers 429', numberOrNone)
    .action((name: string, options: SetOptions, command: Command) =>
      act(command, async (session) => {
        const patch = patchOf(options, command);
        const answer = await session.api.patchTenant(name, patch);
        session.show(answer, () => tenantText(answer, terminal));
      }),
    );
  addPauseCommands(tenant, terminal, run, 'tenant');
}

function patchOf(options: SetOptions, command: Command): object {
  const { type, name, weight, concurrency, rate, burst, maxBacklog } = options;
  const limits = present({ concurrency, ratePerSecond: rate, burst });
  if (type !== undefined && (name !== undefined || maxBacklog !== undefined))
    command.error('error: --name and --max-backlog are of the tenant as a whole: leave --type out', {
      code: 'taskledger.conflict',
    });
  const patch =
    type === undefined
      ? {
          ...present({ displayName: name, weight, maxBacklog }),
          ...(Object.keys(limits).length === 0 ? {} : { limits }),
          ...submissionPatch(options),
        }
      : { types: { [type]: { ...present({ weight }), ...limits, ...submissionPatch(options) } } };
  if (Object.keys(patch).length === 0)
    command.error('error: nothing to set: give at least one option', { code: 'taskledger.nothing' });
  return patch;
}

function tenantText(tenant: TenantAnswer, { clock, columns }: Terminal): string {
  const { limits, submission, types = {} } = tenant;
  return facts(
    [
      ['Tenant', tenant.name],
      ['Name', tenant.displayName],
      ['Created', instant(tenant.createdAt, clock.now())],
      ['Weight', String(tenant.weight ?? 1)],
      ['Concurrency', String(limits?.concurrency ?? 'no limit')],
      ['Dispatch rate', rateText(limits) ?? 'no limit'],
      ['Submission rate', rateText(submission) ?? 'no limit'],
      ['Backlog', String(tenant.maxBacklog ?? 'no limit')],
      ...Object.entries(types).map(
        ([type, share]) =>
          [
            `of ${type}`,
            [
              ...(share.weight === undefined ? [] : [`weight ${share.weight}`]),
              ...(share.concurrency === undefined ? [] : [`concurrency ${share.concurrency}`]),
              ...(share.ratePerSecond === undefined ? [] : [`dispatch ${rateText(share)}`]),
              ...(share.submission === undefined ? [] : [`submission ${rateText(share.submission)}`]),
            ].join('; '),
          ] as const,
      ),
    ],
    columns,
  );
}
