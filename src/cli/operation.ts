import type { Command } from 'commander';
import type { Api } from './api.ts';
import { inSession, openSession, type Session } from './connection.ts';
import { type Column, table } from './table.ts';
import { EXIT, type ExitCode, type Run, type Terminal } from './terminal.ts';

/** Pause between two looks at an operation that is waited for, in ms. */
const LOOK_AGAIN_MS = 500;

/** Work on many tasks at once, which goes on in the server. */
export interface OperationAnswer {
  readonly id: string;
  readonly state: 'running' | 'paused' | 'done' | 'aborted';
  readonly progress: { readonly failed: number };
}

/** What tells one kind of operation from another. */
export interface OperationKind<Answer extends OperationAnswer> {
  readonly noun: 'replay' | 'cancellation';
  /** What has become of a task of it: "replayed". */
  readonly done: string;
  readonly columns: readonly Column[];
  readonly row: (answer: Answer, now: number) => string[];
  /** Its progress, in one line. */
  readonly line: (answer: Answer) => string;
  readonly text: (answer: Answer, terminal: Terminal) => string;
  readonly list: (
    api: Api,
    tenant: string | undefined,
  ) => Promise<Readonly<Record<string, readonly Answer[]>>>;
  readonly get: (api: Api, id: string) => Promise<Answer>;
  readonly control: (api: Api, id: string, wish: 'pause' | 'resume' | 'abort') => Promise<Answer>;
}

/** `list`, `get`, `pause`, `resume` and `abort`. */
export function addOperationCommands<Answer extends OperationAnswer>(
  parent: Command,
  kind: OperationKind<Answer>,
  { terminal, run }: { readonly terminal: Terminal; readonly run: Run },
): void {
  const { noun, done } = kind;
  const act = inSession(terminal, run);
  parent
    .command('list')
    .description(`${noun[0]?.toUpperCase()}${noun.slice(1)}s of the last 90 days, the newest first`)
    .action((_options: object, command: Command) =>
      act(command, async (session) => {
        const answer = await kind.list(session.api, session.tenant);
        const all = answer[`${noun}s`] ?? [];
        const rows = all.map((each) => kind.row(each, terminal.clock.now()));
        session.show(answer, () =>
          rows.length === 0 ? `No ${noun}s.` : table(kind.columns, rows, terminal.columns),
        );
      }),
    );
  parent
    .command('get')
    .description(`How far a ${noun} has come`)
    .argument('<id>')
    .option('--wait', `show the progress until the end; exit code 1 when a task failed to be ${done}`)
    .action((id: string, { wait = false }: { wait?: boolean }, command: Command) =>
      run(async () => {
        const session = openSession(command, terminal);
        return followed(session, kind, { first: await kind.get(session.api, id), wait });
      }),
    );
  for (const [wish, description] of [
    ['pause', `Hold a ${noun} up`],
    ['resume', `Let a paused ${noun} go on`],
    ['abort', `End a ${noun}; what is ${done} stays so`],
  ] as const)
    parent
      .command(wish)
      .description(description)
      .argument('<id>')
      .action((id: string, _options: object, command: Command) =>
        act(command, async (session) => {
          const answer = await kind.control(session.api, id, wish);
          session.show(answer, () => kind.line(answer));
        }),
      );
}

const hint = ({ noun }: { readonly noun: string }, { id }: OperationAnswer): string =>
  `It goes on by itself: "${noun} get ${id} --wait" shows how far it is, "${noun} pause ${id}" holds it up.`;

/** Shows the operation; with `wait`, each step of its progress until the end. */
export async function followed<Answer extends OperationAnswer>(
  session: Session,
  kind: OperationKind<Answer>,
  { first, wait }: { readonly first: Answer; readonly wait: boolean },
): Promise<ExitCode> {
  const { terminal, json } = session;
  if (first.state === 'running' && Number.isFinite(terminal.columns) && !json)
    terminal.err(`${hint(kind, first)}\n`);
  let current = first;
  let shown = '';
  while (wait && (current.state === 'running' || current.state === 'paused')) {
    const line = kind.line(current);
    if (!json && line !== shown) terminal.out(`${line}\n`);
    shown = line;
    await terminal.pause(LOOK_AGAIN_MS);
    current = await kind.get(session.api, current.id);
  }
  session.show(current, () => kind.text(current, terminal));
  return wait && (current.state === 'aborted' || current.progress.failed > 0) ? EXIT.taskFailed : EXIT.ok;
}
