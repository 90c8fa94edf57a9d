import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TaskInfo } from '../index.ts';

type By = { readonly task: Pick<TaskInfo, 'id' | 'attempt'> };
type Content = string | Uint8Array | ((path: string) => Promise<unknown>);

/**
 * Makes `file` (a path below `mediaDir`) and returns it. It is written beside its goal and moved there at the end, under
 * a name of the attempt's own: a killed attempt leaves no half file, and a late one cannot disturb the next.
 */
export async function produce(
  mediaDir: string,
  file: string,
  { task }: By,
  content: Content,
): Promise<string> {
  const goal = join(mediaDir, file);
  const part = goal.replace(/(\.\w+)$/, `.${task.id.slice(-6)}-${task.attempt}.part$1`);
  await (typeof content === 'function' ? content(part) : writeFile(part, content));
  await rename(part, goal);
  return file;
}
