import { execFile } from 'node:child_process';

/** Far longer than any of them takes, even on a busy machine. */
const TIMEOUT_MS = 20_000;

/** Runs a program that is over at once, and answers what it wrote. */
export const run = (bin: string, args: readonly string[], input = ''): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = execFile(bin, args, { timeout: TIMEOUT_MS }, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      const reason = stderr.trim() || error.message;
      reject(new Error(`${[bin, ...args].join(' ')}: ${reason}`, { cause: error }));
    });
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });

/** The same inside a network namespace. */
export const runIn = (
  namespace: string,
  [bin = '', ...args]: readonly string[],
  input?: string,
): Promise<string> => run('nsenter', [`--net=/run/netns/${namespace}`, '--', bin, ...args], input);
