import type { Command } from 'commander';
import type { PauseAnswer } from './answers.ts';
import { inSession, instantOrDelay } from './connection.ts';
import type { Run, Terminal } from './terminal.ts';
import { instant } from './time.ts';

/** `pause` and `resume` under the noun whose tasks they hold up. */
export function addPauseCommands(noun: Command, terminal: Terminal, run: Run, of: 'tenant' | 'type'): void {
  const act = inSession(terminal, run);
  const scope =
    of === 'tenant'
      ? 'all tasks of a tenant'
      : "the tasks of a type: everybody's, or those of --tenant; of a tenant's key, its own";
  noun
    .command('pause')
    .description(`Queue no more of ${scope}; what runs goes on`)
    .argument(`<${of}>`)
    .requiredOption('--reason <text>', 'shown to everybody who asks why')
    .option(
      '--until <when>',
      'ends by itself then (ISO 8601), or after this long (+2h)',
      instantOrDelay(() => terminal.clock.now()),
    )
    .action((name: string, options: { reason: string; until?: string | number }, command: Command) =>
      act(command, async (session) => {
        const answer = await session.api.pause(of, name, options, of === 'type' ? session.tenant : undefined);
        session.show(answer, () => pauseLine(answer, terminal.clock.now()));
      }),
    );
  noun
    .command('resume')
    .description('End a pause')
    .argument(`<${of}>`)
    .action((name: string, _options: object, command: Command) =>
      act(command, async (session) => {
        const answer = await session.api.resume(of, name, of === 'type' ? session.tenant : undefined);
        session.show(answer, () => `${name}  ${answer.resumed ? 'resumed' : 'was not paused'}`);
      }),
    );
}

export const scopeText = ({ tenant, type }: PauseAnswer): string =>
  [...(type === null ? [] : [`type ${type}`]), ...(tenant === null ? [] : [`tenant ${tenant}`])].join(' of ');

const pauseLine = (pause: PauseAnswer, now: number): string =>
  `${scopeText(pause)}  paused${pause.until === null ? '' : ` until ${instant(pause.until, now)}`}: ${pause.reason}`;
