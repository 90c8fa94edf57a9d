import { type Command, InvalidArgumentError } from 'commander';
import { type Api, createApi } from './api.ts';
import { EXIT, type Run, type Terminal } from './terminal.ts';
import { parseDuration } from './time.ts';

/** Options of every command. */
export interface CommonOptions {
  readonly url?: string;
  readonly key?: string;
  readonly tenant?: string;
  readonly json?: boolean;
}

export const DEFAULT_URL = 'http://127.0.0.1:8080';

/** The environment of the command line; flags win over it. */
export const ENVIRONMENT = {
  url: { name: 'TASKLEDGER_URL', description: `Address of the API; ${DEFAULT_URL} when absent` },
  key: { name: 'TASKLEDGER_KEY', description: 'API key' },
  tenant: { name: 'TASKLEDGER_TENANT', description: "For operators' keys: the tenant to act for" },
} as const;

export const withCommonOptions = (program: Command): Command =>
  program
    .option('--url <url>', `${ENVIRONMENT.url.description} (${ENVIRONMENT.url.name})`)
    .option('--key <key>', `${ENVIRONMENT.key.description} (${ENVIRONMENT.key.name})`)
    .option('--tenant <tenant>', `${ENVIRONMENT.tenant.description} (${ENVIRONMENT.tenant.name})`)
    .option('--json', 'Print what the API answered, as JSON');

/** What one command works with. */
export interface Session {
  readonly api: Api;
  readonly tenant: string | undefined;
  readonly json: boolean;
  readonly terminal: Terminal;
  /** Prints the answer itself with `--json`, else what `text` makes of it. */
  show(answer: unknown, text: () => string): void;
}

/** Resolves flags and environment; a missing key is a mistake in usage. */
export function openSession(command: Command, terminal: Terminal): Session {
  const options: CommonOptions = command.optsWithGlobals();
  const { env } = terminal;
  const key = options.key ?? env[ENVIRONMENT.key.name];
  if (!key) {
    command.error('error: no API key: give one with --key, or set TASKLEDGER_KEY', {
      code: 'taskledger.keyMissing',
    });
  }
  const url = options.url ?? env[ENVIRONMENT.url.name] ?? DEFAULT_URL;
  if (!URL.canParse(url)) command.error(`error: ${url} is not a URL`, { code: 'taskledger.urlInvalid' });
  const json = options.json ?? false;
  return {
    api: createApi({ url, key, fetch: terminal.fetch }),
    tenant: options.tenant ?? (env[ENVIRONMENT.tenant.name] || undefined),
    json,
    terminal,
    show: (answer, text) => terminal.out(`${json ? JSON.stringify(answer, null, 2) : text()}\n`),
  };
}

/** Does what a command is for in a session; the exit code is 0 unless something is thrown. */
export const inSession =
  (terminal: Terminal, run: Run) =>
  (command: Command, work: (session: Session) => Promise<void>): Promise<void> =>
    run(async () => {
      await work(openSession(command, terminal));
      return EXIT.ok;
    });

/** Argument parsers: what they throw is a mistake in usage. */
export function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('a whole number is expected.');
  return Number(text);
}

export function durationMs(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined)
    throw new InvalidArgumentError('a duration such as 500ms, 30s, 5m, 2h or 1d is expected.');
  return ms;
}

/** An instant as it is, or a duration to add to now (`+5m`). */
export const instantOrDelay =
  (now: () => number) =>
  (text: string): string | number =>
    text.startsWith('+') ? now() + durationMs(text.slice(1)) : text;

/** What `instantOrAge` takes where a sequence may be given too. */
export const POINT = 'a log sequence, an instant (ISO 8601), or this long ago (2h)';

/** An instant as it is, or a duration before now (`2h`), in ms since 1970. */
export const instantOrAge =
  ({ clock }: Terminal) =>
  (text: string): string | number => {
    const ms = parseDuration(text);
    return ms === undefined ? text : clock.now() - ms;
  };
