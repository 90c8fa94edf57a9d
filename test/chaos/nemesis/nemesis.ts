import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Link } from '../network/network.ts';
import type { Victim } from '../stand/victim.ts';
import type { Fault } from './plan.ts';

export interface NemesisParts {
  readonly victims: ReadonlyMap<string, Victim>;
  readonly brokers: readonly Victim[];
  readonly links: ReadonlyMap<string, Link>;
  /** Asks a group's leader to step down; true when one did. */
  stepDown(group: string): Promise<boolean>;
  /** Throws away something that can be made again from the log. */
  damage(what: string): Promise<void>;
}

/** A fault as it came to pass, in ms since 1970. */
export interface DoneFault extends Fault {
  readonly startedAt: number;
  readonly endedAt: number;
  /** Why it could not be done, when it could not. */
  readonly failed?: string;
}

/** Does what the plan says, each fault at its time, and answers what was done. When it resolves, nothing is hurt any more. */
export async function runFaults(
  plan: readonly Fault[],
  parts: NemesisParts,
  { signal, onFault }: { signal: AbortSignal; onFault: (fault: DoneFault) => void },
): Promise<DoneFault[]> {
  // Every fault waits on it.
  setMaxListeners(0, signal);
  const startedAt = Date.now();
  const until = (ms: number): Promise<unknown> =>
    delay(Math.max(0, startedAt + ms - Date.now()), undefined, { signal }).catch(() => undefined);
  const done = await Promise.all(
    plan.map(async (fault): Promise<DoneFault | undefined> => {
      await until(fault.atMs);
      if (signal.aborted) return undefined;
      const begun = Date.now();
      const finish = (failed?: string): DoneFault => {
        const result = {
          ...fault,
          startedAt: begun,
          endedAt: Date.now(),
          ...(failed === undefined ? {} : { failed }),
        };
        onFault(result);
        return result;
      };
      try {
        await hurt(fault, parts);
        await until(fault.untilMs);
        await heal(fault, parts);
        return finish();
      } catch (error) {
        return finish(error instanceof Error ? error.message : String(error));
      }
    }),
  );
  await healAll(parts);
  return done.filter((fault) => fault !== undefined);
}

export async function healAll({ victims, links }: NemesisParts): Promise<void> {
  await Promise.all([...links.values()].map((link) => link.heal()));
  await Promise.all(
    [...victims.values()].map(async (victim) => {
      await victim.resume();
      await victim.start();
    }),
  );
}

async function hurt({ kind, target, delayMs }: Fault, parts: NemesisParts): Promise<void> {
  switch (kind) {
    case 'kill':
      return parts.victims.get(target)?.kill();
    case 'restart':
      return parts.victims.get(target)?.stop();
    case 'pause':
      return parts.victims.get(target)?.pause();
    case 'cut':
      return parts.links.get(target)?.cut();
    case 'blackhole':
    case 'partition':
      return parts.links.get(target)?.blackhole();
    case 'mute':
      return parts.links.get(target)?.mute();
    case 'deafen':
      return parts.links.get(target)?.deafen();
    case 'slow':
      return parts.links.get(target)?.slow(delayMs ?? 0);
    case 'kill all brokers':
      await Promise.all(parts.brokers.map((broker) => broker.kill()));
      return;
    case 'stepdown':
      if (!(await parts.stepDown(target))) throw new Error('no leader stepped down');
      return;
    case 'damage':
      return parts.damage(target);
    default:
      return kind satisfies never;
  }
}

async function heal({ kind, target }: Fault, parts: NemesisParts): Promise<void> {
  switch (kind) {
    case 'kill':
    case 'restart':
      return parts.victims.get(target)?.start();
    case 'pause':
      return parts.victims.get(target)?.resume();
    case 'cut':
    case 'blackhole':
    case 'partition':
    case 'mute':
    case 'deafen':
    case 'slow':
      return parts.links.get(target)?.heal();
    case 'kill all brokers':
      await Promise.all(parts.brokers.map((broker) => broker.start()));
      return;
    case 'stepdown':
    case 'damage':
      return;
    default:
      return kind satisfies never;
  }
}
