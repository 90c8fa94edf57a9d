import type { Release, Violation } from './evidence.ts';
import { type Lives, lineOf } from './lives.ts';

/** `versions`: who claims a task knows the version that it was submitted for. */
export const checkVersions = (lives: Lives, releases: readonly Release[]): Violation[] =>
  [...lives.values()].flatMap((life): Violation[] => {
    const [first] = life;
    if (releases.length === 0 || first?.event.kind !== 'INGESTED') return [];
    const { version = 1 } = first.event.data;
    return life.flatMap((recorded): Violation[] => {
      const { kind, type, taskId, actor } = recorded.event;
      if (kind !== 'CLAIMED') return [];
      const release = releases.find(({ mark }) => actor.id.includes(mark));
      const [least, greatest] = release?.versions[type] ?? [1, 1];
      if (version >= least && version <= greatest) return [];
      return [
        {
          rule: 'versions',
          message: `task ${taskId} needs version ${version} of ${type}; ${actor.id} knows ${least} to ${greatest}`,
          witness: [first, recorded].map(lineOf),
        },
      ];
    });
  });
