import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { TaskledgerError } from '../../src/domain/errors.ts';
import { choosePort, freePort } from '../../src/platform/embedded/ports.ts';

export interface PortBook {
  /**
   * The port in the variable `env`, which is then required (0: any free one); else the one of the last session, so that addresses stay
   * the same; else `usual`; else a free one.
   */
  choose(wish: { readonly what: string; readonly env: string; readonly usual: number }): Promise<number>;
}

/** Remembers in `file` which ports a project's servers used. */
export async function openPortBook(options: {
  readonly file: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly print: (line: string) => void;
}): Promise<PortBook> {
  const { file, env, print } = options;
  const known = await readPorts(file);
  return {
    async choose({ what, env: variable, usual }) {
      const pinned = pinnedPort(variable, env[variable]);
      if (pinned === 0) return freePort();
      const preferred = pinned ?? known[what] ?? usual;
      const port = await choosePort({
        what,
        preferred,
        pinnedBy: pinned === undefined ? undefined : variable,
        log: print,
      });
      if (pinned !== undefined || known[what] === port) return port;
      known[what] = port;
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, JSON.stringify(known));
      return port;
    },
  };
}

function pinnedPort(variable: string, text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined;
  const port = Number(text);
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new TaskledgerError('config_invalid', {
    key: variable,
    reason: `${JSON.stringify(text)} is not a port`,
  });
}

async function readPorts(file: string): Promise<Record<string, number>> {
  try {
    const value: unknown = JSON.parse(await readFile(file, 'utf8'));
    if (typeof value !== 'object' || value === null) return {};
    return Object.fromEntries(
      Object.entries(value).filter((pair): pair is [string, number] => typeof pair[1] === 'number'),
    );
  } catch {
    return {};
  }
}
