import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** What Linux knows of processes, from /proc. `USER_HZ` is 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;
const KIB_PER_MIB = 1024;

/** CPU and memory figures exist on Linux only; elsewhere they are left out. */
export const canAccount = existsSync('/proc/self/stat');

export interface ProcessTimes {
  readonly parentPid: number;
  /** User and system seconds of the process's own threads. */
  readonly ownSeconds: number;
  /** The same of children that have ended and were waited for. */
  readonly reapedSeconds: number;
}

/** Reads the text of /proc/<pid>/stat. The program's name stands in brackets and may hold spaces and brackets. */
export function parseStat(text: string): ProcessTimes {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const ticks = (index: number): number => Number(fields[index]) / TICKS_PER_SECOND;
  return {
    parentPid: Number(fields[1]),
    ownSeconds: ticks(11) + ticks(12),
    reapedSeconds: ticks(13) + ticks(14),
  };
}

function timesOf(pid: number): ProcessTimes | undefined {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return undefined;
  }
}

/** The roots that live and all their living descendants. */
export function processTree(roots: readonly number[]): number[] {
  const childrenOf = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    const times = Number.isInteger(pid) ? timesOf(pid) : undefined;
    if (times === undefined) continue;
    const siblings = childrenOf.get(times.parentPid);
    if (siblings === undefined) childrenOf.set(times.parentPid, [pid]);
    else siblings.push(pid);
  }
  const found: number[] = [];
  const waiting = roots.filter((pid) => timesOf(pid) !== undefined);
  for (let pid = waiting.pop(); pid !== undefined; pid = waiting.pop()) {
    found.push(pid);
    waiting.push(...(childrenOf.get(pid) ?? []));
  }
  return found;
}

/** User and system seconds that the trees have used so far. */
export function cpuSeconds(roots: readonly number[]): number {
  return processTree(roots).reduce((sum, pid) => {
    const times = timesOf(pid);
    return times === undefined ? sum : sum + times.ownSeconds + times.reapedSeconds;
  }, 0);
}

export interface Memory {
  readonly anonKib: number;
  readonly sharedKib: number;
  readonly fileKib: number;
}

export function parseStatus(text: string): Memory {
  const kib = (key: string): number => Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0);
  return { anonKib: kib('RssAnon'), sharedKib: kib('RssShmem'), fileKib: kib('RssFile') };
}

/** Resident MiB of the trees: private pages are summed, shared memory and file pages count once (the largest). */
export function residentMib(roots: readonly number[]): number {
  let anonKib = 0;
  let sharedKib = 0;
  let fileKib = 0;
  for (const pid of processTree(roots)) {
    const memory = memoryOf(pid);
    if (memory === undefined) continue;
    anonKib += memory.anonKib;
    sharedKib = Math.max(sharedKib, memory.sharedKib);
    fileKib = Math.max(fileKib, memory.fileKib);
  }
  return (anonKib + sharedKib + fileKib) / KIB_PER_MIB;
}

function memoryOf(pid: number): Memory | undefined {
  try {
    return parseStatus(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return undefined;
  }
}

/** Busy seconds of all cores since boot: what is left after our own shows who else used the machine. */
export function machineBusySeconds(): number {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0, steal = 0] = (
    readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? ''
  )
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softIrq + steal) / TICKS_PER_SECOND;
}
