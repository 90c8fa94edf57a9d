import type { Submission, TypedHandler } from '../index.ts';

/**
 * Real work to watch: a source of items on disk, and the tasks that each of them needs. Every item has a folder of its
 * own under the media folder, which holds its source and all that is made of it.
 */
export interface Demo {
  readonly name: DemoName;
  /** What it does, in a sentence or two. */
  readonly text: string;
  readonly types: readonly string[];
  /** A task that works as soon as the first item is there. */
  readonly sample: Submission;
  /** Pause between two items, in ms. */
  readonly everyMs: number;
  /** Items that are kept on disk; older ones are removed. */
  readonly keepItems: number;
  handlers(mediaDir: string): Readonly<Record<string, TypedHandler>>;
  /** Makes item number `n` (from 0) and says what is to be done with it. */
  makeItem(item: Item): Promise<readonly Submission[]>;
}

export interface Item {
  /** A folder name. */
  readonly id: string;
  readonly n: number;
  /** Exists, and is empty. */
  readonly dir: string;
}

export const DEMO_NAMES = ['video', 'files'] as const;
export type DemoName = (typeof DEMO_NAMES)[number];

/** The first item: it is never removed, so that a sample can name it. */
export const FIRST_ITEM = 'welcome';
