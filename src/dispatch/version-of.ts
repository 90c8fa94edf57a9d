import { FIRST_VERSION, type TaskEvent } from '../domain/events.ts';

/** What the event itself says of the version that its task needs; undefined when it says nothing. */
export function versionOf(event: TaskEvent): number | undefined {
  switch (event.kind) {
    case 'INGESTED':
      return event.data.version ?? FIRST_VERSION;
    case 'QUEUED':
      return event.data.facts.version ?? FIRST_VERSION;
    case 'CARRIED':
      return event.data.state.facts.version ?? FIRST_VERSION;
    case 'REPLAYED':
      return event.data.carried === undefined
        ? undefined
        : (event.data.carried.facts.version ?? FIRST_VERSION);
    default:
      return undefined;
  }
}
