import type { Release } from '../checker/evidence.ts';
import { VERSIONED } from './wishes.ts';

/** What a worker of a release is called; more follows in the id of an incarnation. */
export const workerOf = (name: string, release: number): string => `${name}-r${release}`;

/** Each knows the versions of the versioned type up to its own number. */
export const RELEASES: readonly Release[] = [1, 2].map((release) => ({
  mark: `${workerOf('', release)}-`,
  versions: { [VERSIONED]: [1, release] },
}));
