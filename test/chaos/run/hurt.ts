import { setTimeout as delay } from 'node:timers/promises';
import type { Load } from '../load/load.ts';
import { type DoneFault, runFaults } from '../nemesis/nemesis.ts';
import { planFaults } from '../nemesis/plan.ts';
import type { Stand } from '../stand/stand.ts';

const PROGRESS_EVERY_MS = 30_000;
/** Part of the run after which all dispatchers are restarted without a snapshot, and the workers get their second release. */
const ROLL_OUT_AT = 0.4;
const SECOND_RELEASE = 2;

/** What was done to the stand, and when the load began and ended (ms since 1970). */
export interface Hurt {
  readonly faults: readonly DoneFault[];
  readonly from: number;
  readonly to: number;
}

/** The planned faults and a roll-out while the load goes on, for `seconds` or until the signal. When it resolves, all is healed. */
export async function hurtUnderLoad(
  stand: Stand,
  load: Load,
  options: {
    readonly seed: number;
    readonly seconds: number;
    readonly tasksPerSecond: number;
    readonly log: (line: string) => void;
    readonly record: (fault: DoneFault) => void;
    readonly signal?: AbortSignal;
  },
): Promise<Hurt> {
  const { seed, seconds, log, signal } = options;
  const from = Date.now();
  const plan = planFaults({ seed, lengthMs: seconds * 1_000, targets: stand.targets });
  let hurt = 0;
  log(`${plan.length} faults in ${seconds} s, ${options.tasksPerSecond} tasks/s`);
  const progress = setInterval(
    () => log(`${progressOf(load)}, ${hurt} of ${plan.length} faults`),
    PROGRESS_EVERY_MS,
  );
  const length = AbortSignal.timeout(seconds * 1_000);
  const over = signal === undefined ? length : AbortSignal.any([length, signal]);
  const after = (ms: number): Promise<unknown> =>
    delay(ms, undefined, { signal: over }).catch(() => undefined);
  const rolledOut = after(ROLL_OUT_AT * seconds * 1_000).then(async () => {
    load.setRelease(SECOND_RELEASE);
    log('restarting the dispatchers without a snapshot, and rolling the second release of the workers out');
    await stand.redeploy('afresh');
    await stand.rollOut(SECOND_RELEASE, over);
  });
  const lengthOver = after(seconds * 1_000);
  const onFault = (fault: DoneFault): void => {
    hurt += 1;
    options.record(fault);
    log(faultText(fault));
  };
  const faults = await runFaults(plan, stand, { signal: signal ?? new AbortController().signal, onFault });
  await Promise.all([lengthOver, rolledOut]);
  const to = Date.now();
  clearInterval(progress);
  // Whoever was to be given a release and was down meanwhile has it now.
  await stand.rollOut(SECOND_RELEASE, new AbortController().signal);
  return { faults, from, to };
}

function progressOf({ subscriber: { statuses } }: Load): string {
  const completed = [...statuses.values()].filter((status) => status === 'COMPLETED').length;
  return `${statuses.size} tasks, ${completed} completed`;
}

const faultText = ({ kind, target, startedAt, endedAt, failed }: DoneFault): string =>
  `${kind} ${target} for ${endedAt - startedAt} ms${failed ? `: ${failed}` : ''}`;
