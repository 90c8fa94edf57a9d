import { DispatchCore } from '../../src/dispatch/core.ts';
import type { CoreSettings, Decision, Phase } from '../../src/dispatch/decisions.ts';
import { stateOf } from '../../src/dispatch/live-task.ts';
import type { Command } from '../../src/domain/commands.ts';
import { decide } from '../../src/domain/decide.ts';
import type { Actor } from '../../src/domain/events.ts';
import { FencedLog, taskIdOf } from './fenced-log.ts';

export const NOW = Date.parse('2026-01-01T00:00:00Z');
export const dispatcher: Actor = { kind: 'dispatcher', id: 'd1' };

/** A core that follows a log in memory. `given` lets things happen in the log and shows them to the core. */
export function coreWorld({ phase = 'leading', ...over }: Partial<CoreSettings> & { phase?: Phase } = {}) {
  const log = new FencedLog(NOW);
  const core = new DispatchCore({
    window: { min: 3, max: 100, ms: 500 },
    inlinePayloadBytes: 100,
    payloadCacheBytes: 1_000,
    ...over,
  });
  core.enter(phase);
  let seen = 0;
  const show = (): void => {
    for (const recorded of log.events.slice(seen)) core.observe(recorded);
    seen = log.events.length;
  };
  const given = (...steps: (() => unknown)[]): void => {
    for (const step of steps) step();
    show();
  };
  const decisions = (): Decision[] => {
    const made: Decision[] = [];
    core.decide(made, log.now);
    return made;
  };
  /** Appends an intent as the performer does; the core does not see the event before `given` shows it. */
  const append = ({ kind, task, seq }: Decision) => {
    const command = {
      kind,
      eventId: taskIdOf(0xd000_0000 + log.events.length),
      at: log.now,
      actor: dispatcher,
    };
    const decided = decide(stateOf(task, null), { ...command, inlinePayload: true } as Command);
    if (!decided.ok) throw decided.error;
    return log.append(decided.value, seq);
  };
  /** Decides, appends everything and shows the outcome. */
  const run = (): Decision[] => {
    const made = decisions();
    for (const decision of made) append(decision);
    show();
    return made;
  };
  const line = (type = 'transcode') => core.stats()[type];
  return { log, core, given, decisions, append, run, line };
}

export const named = (decisions: readonly Decision[]): string[] =>
  decisions.map(({ kind, task }) => `${kind} ${Number.parseInt(task.id.slice(-12), 16)}`);

/** A task that was queued, claimed and started. */
export function running({ log, given, run }: ReturnType<typeof coreWorld>, n = 1, over = {}): string {
  const id = taskIdOf(n);
  given(() => log.ingest(n, over));
  run();
  given(
    () => log.claim(id),
    () => log.start(id),
  );
  return id;
}
