import { runCommandLine } from '../../src/cli/program.ts';
import type { Terminal } from '../../src/cli/terminal.ts';

export const NOW = Date.parse('2026-01-01T00:10:00Z');

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly authorization: string | null;
}
export type Answer = { status?: number; body?: unknown };

/** Runs a command line against answers that are given in their order, the last of them again and again. */
export async function cli(args: string, answers: readonly Answer[] = [], given: Partial<Terminal> = {}) {
  const calls: Call[] = [];
  let out = '';
  let err = '';
  const terminal: Terminal = {
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    columns: 80,
    env: { TASKLEDGER_KEY: 'tl_1_secret' },
    clock: { now: () => NOW },
    stdin: async () => '',
    readFile: async (path) => Promise.reject(new Error(`no such file: ${path}`)),
    pause: async () => {},
    fetch: async (input, init) => {
      const url = new URL(input instanceof Request ? input.url : input);
      calls.push({
        method: init?.method ?? 'GET',
        path: `${url.pathname}${url.search}`,
        body: typeof init?.body === 'string' ? JSON.parse(init.body) : undefined,
        authorization: new Headers(init?.headers).get('authorization'),
      });
      const { status = 200, body } = answers[Math.min(calls.length, answers.length) - 1] ?? {};
      return status === 204 ? new Response(null, { status }) : Response.json(body ?? null, { status });
    },
    ...given,
  };
  const exit = await runCommandLine(
    args.match(/'[^']*'|\S+/g)?.map((arg) => arg.replaceAll("'", '')) ?? [],
    terminal,
  );
  return { exit, out, err, calls };
}

export const refusal = (status: number, code: string, more: object = {}) => ({
  status,
  body: {
    error: {
      code,
      message: 'It is so',
      fix: 'Do otherwise.',
      retryable: false,
      doc: `/errors/${code}`,
      ...more,
    },
  },
});

/** Columns that a text takes. */
export const widest = (text: string): number => Math.max(...text.split('\n').map((line) => line.length));
