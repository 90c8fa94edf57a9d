import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The parts of V8's .cpuprofile that count self time. */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
    readonly children?: readonly number[];
  }[];
  readonly samples: readonly number[];
  /** Microseconds since the previous sample. */
  readonly timeDeltas: readonly number[];
}

export interface Spent {
  readonly where: string;
  readonly selfMs: number;
  /** Share of the time that was not idle. */
  readonly share: number;
}

export interface ProfileSummary {
  readonly totalMs: number;
  readonly busyMs: number;
  readonly functions: readonly Spent[];
  /** The same by file or package. */
  readonly files: readonly Spent[];
}

const IDLE = '(idle)';

/** Self time by function and by file, most first. */
export function summarizeProfile(profile: CpuProfile): ProfileSummary {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const byFunction = new Map<string, number>();
  const byFile = new Map<string, number>();
  let totalUs = 0;
  let idleUs = 0;
  profile.samples.forEach((id, index) => {
    const us = profile.timeDeltas[index] ?? 0;
    const frame = nodes.get(id)?.callFrame;
    if (frame === undefined) return;
    totalUs += us;
    if (frame.functionName === IDLE) {
      idleUs += us;
      return;
    }
    const file = shortFile(frame.url);
    const name = frame.functionName || '(anonymous)';
    add(byFunction, file === '' ? name : `${name} ${file}:${frame.lineNumber + 1}`, us);
    add(byFile, file === '' ? name : file, us);
  });
  const busyUs = totalUs - idleUs;
  const list = (times: Map<string, number>): Spent[] =>
    [...times]
      .sort(([, a], [, b]) => b - a)
      .map(([where, us]) => ({ where, selfMs: us / 1_000, share: busyUs === 0 ? 0 : us / busyUs }));
  return {
    totalMs: totalUs / 1_000,
    busyMs: busyUs / 1_000,
    functions: list(byFunction),
    files: list(byFile),
  };
}

const add = (times: Map<string, number>, key: string, us: number): void => {
  times.set(key, (times.get(key) ?? 0) + us);
};

/** `dist/src/log/append.js`, or `@nats-io/nats-core/lib/protocol.js` for a package. */
function shortFile(url: string): string {
  const inPackage = url.lastIndexOf('/node_modules/');
  if (inPackage >= 0) return url.slice(inPackage + '/node_modules/'.length);
  const inDist = url.lastIndexOf('/dist/');
  return inDist >= 0 ? url.slice(inDist + 1) : url;
}

export function profileText(title: string, summary: ProfileSummary, lines = 30): string {
  const table = (spent: readonly Spent[]): string[] =>
    spent
      .slice(0, lines)
      .map(
        ({ where, selfMs, share }) =>
          `${(share * 100).toFixed(1).padStart(6)} % ${Math.round(selfMs).toString().padStart(7)} ms  ${where}`,
      );
  return [
    `${title}: busy ${Math.round(summary.busyMs)} of ${Math.round(summary.totalMs)} ms`,
    ...table(summary.functions),
    'by file:',
    ...table(summary.files),
  ].join('\n');
}

/** Summaries of all profiles in a folder, the busiest first. */
export async function folderText(dir: string, lines?: number): Promise<string> {
  const files = (await readdir(dir)).filter((file) => file.endsWith('.cpuprofile'));
  const summaries = await Promise.all(
    files.map(async (file) => ({
      file,
      summary: summarizeProfile(JSON.parse(await readFile(join(dir, file), 'utf8')) as CpuProfile),
    })),
  );
  return summaries
    .sort((a, b) => b.summary.busyMs - a.summary.busyMs)
    .map(({ file, summary }) => profileText(file, summary, lines))
    .join('\n\n');
}
