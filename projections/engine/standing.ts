import type { ProjectorStats } from './projector.ts';

/** What the health of a projector process says. */
export interface Standing {
  readonly ok: boolean;
  readonly detail: string;
}

/** `waitsFor`: why the projector has not been started yet. */
export function standingOf(
  { outage, stopped, lag }: Pick<ProjectorStats, 'outage' | 'stopped' | 'lag'>,
  waitsFor: string | undefined,
): Standing {
  const halted = Object.entries(stopped).map(
    ([projection, reason]) => `${projection} stands still: ${reason}`,
  );
  const behind = `${lag} events behind`;
  if (outage !== undefined) return { ok: false, detail: `Postgres cannot be written: ${outage}; ${behind}` };
  // Before the start nobody knows how far it is behind.
  if (waitsFor !== undefined) return { ok: false, detail: waitsFor };
  return { ok: halted.length === 0, detail: [...halted, behind].join('; ') };
}
