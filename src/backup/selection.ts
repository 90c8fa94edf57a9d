import { TaskledgerError } from '../domain/errors.ts';
import type { Names } from '../log/subjects.ts';
import type { BackedUpStream, Manifest } from './manifest.ts';

const BUCKET = 'KV_';

/** What people call a stream or a bucket: `TASKS`, `types`. */
export function shortName(stream: string, prefix: string): string {
  const bare = stream.startsWith(BUCKET) ? stream.slice(BUCKET.length) : stream;
  return bare.startsWith(prefix) ? bare.slice(prefix.length) : bare;
}

/**
 * The streams of a backup that are asked for by their short or full names, all without `only`, in the order in which they
 * are restored: TASKS before HISTORY, which looks for the rest of it at once. Throws `backup_lacks`.
 */
export function choose(
  { streams }: Pick<Manifest, 'streams'>,
  { names, dir, only }: { names: Names; dir: string; only: readonly string[] | undefined },
): readonly BackedUpStream[] {
  const shortOf = ({ name }: BackedUpStream): string => shortName(name, names.prefix);
  const isCalled = (stream: BackedUpStream, asked: string): boolean =>
    asked === stream.name || asked === shortOf(stream);
  const lacking = only?.filter((asked) => !streams.some((stream) => isCalled(stream, asked))) ?? [];
  if (lacking.length > 0)
    throw new TaskledgerError('backup_lacks', {
      dir,
      lacking: lacking.join(', '),
      held: streams.map(shortOf).join(', '),
    });
  const chosen = streams.filter((stream) => only?.some((asked) => isCalled(stream, asked)) ?? true);
  const isTasks = ({ name }: BackedUpStream): boolean => name === names.streams.tasks;
  return [...chosen.filter(isTasks), ...chosen.filter((stream) => !isTasks(stream))];
}
