import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Alone } from '../checker/evidence.ts';

/** What the parts themselves wrote down of a run. */
export interface PartLogs {
  readonly alone: readonly Alone[];
  /** Dispatchers that began from a snapshot, and those that read a log from its beginning which was not empty. */
  readonly starts: { readonly snapshot: number; readonly log: number };
  /** What was asked of the product and failed in a way that its code does not expect. None is right, whatever was hurt. */
  readonly defects: readonly string[];
}

/** A process that keeps rates by itself says so when it begins to, and then for this long says nothing of it. */
const TOLD_AGAIN_MS = 10_000;
/** Before it says so it has waited for an answer, and once it has begun it goes on for a second. */
const AROUND_MS = 2_000;
const ALONE = 'submission rates are kept by each process alone: the shared bucket does not answer';
const REPLAYED = 'the log is replayed';
const DEFECTS: ReadonlySet<string> = new Set(['request failed', 'a submission failed unexpectedly']);

/** `dir` holds a folder a part, each with its `log`. */
export async function readPartLogs(dir: string, parts: readonly string[]): Promise<PartLogs> {
  const alone: Alone[] = [];
  const starts = { snapshot: 0, log: 0 };
  const defects: string[] = [];
  for (const process of parts) {
    const text = await readFile(join(dir, process, 'log'), 'utf8').catch(() => '');
    for (const { msg, time, snapshot, lastSeq, err } of text.split('\n').flatMap(entryIn)) {
      const at = Date.parse(time);
      if (msg === ALONE) alone.push({ process, from: at - AROUND_MS, until: at + TOLD_AGAIN_MS + AROUND_MS });
      if (msg === REPLAYED && lastSeq !== 0) starts[snapshot === undefined ? 'log' : 'snapshot'] += 1;
      if (DEFECTS.has(msg)) defects.push(`${time} ${process}: ${msg}: ${err?.type}: ${err?.message}`);
    }
  }
  return { alone, starts, defects };
}

interface Entry {
  readonly msg: string;
  readonly time: string;
  /** Of a dispatcher that has begun: the position of the snapshot, and the end of the log. */
  readonly snapshot?: number;
  readonly lastSeq?: number;
  readonly err?: { readonly type: string; readonly message: string };
}

/** Lines that are no entries are what Node itself has to say. */
function entryIn(line: string): Entry[] {
  try {
    const entry: unknown = JSON.parse(line);
    return typeof entry === 'object' && entry !== null && 'msg' in entry && 'time' in entry
      ? [entry as Entry]
      : [];
  } catch {
    return [];
  }
}
