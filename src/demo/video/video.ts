import { type Demo, FIRST_ITEM, type Item } from '../demo.ts';
import { damageClip, renderClip } from './clips.ts';
import { analysis, metadata, thumbnail, transcode } from './definitions.ts';
import { videoHandlers } from './handlers.ts';

/** Every so many clips one arrives damaged, so that the dead-letter queues have something to show. */
const DAMAGED_EVERY = 12;

export const videoDemo: Demo = {
  name: 'video',
  text: `Demo: the video pipeline. Every few seconds ffmpeg renders a clip, which is transcoded, gets a thumbnail and is
  measured; one clip in ${DAMAGED_EVERY} is damaged and ends in the dead-letter queues.`,
  types: [transcode.type, thumbnail.type, metadata.type, analysis.type],
  sample: metadata.submission({ clip: FIRST_ITEM }),
  everyMs: 5_000,
  keepItems: 50,
  handlers: videoHandlers,
  makeItem,
};

async function makeItem({ id, n, dir }: Item) {
  await renderClip(dir, { n, seconds: 3 + (n % 4) });
  if (n % DAMAGED_EVERY === DAMAGED_EVERY - 1) await damageClip(dir);
  return tasksOf(id);
}

/** The four tasks of a clip. A repeat submits none of them anew. */
export const tasksOf = (clip: string) => [
  metadata.submission({ clip }, { idempotencyKey: `${clip}:metadata`, priority: 1 }),
  thumbnail.submission({ clip }, { idempotencyKey: `${clip}:thumbnail` }),
  analysis.submission({ clip }, { idempotencyKey: `${clip}:analysis`, priority: 3 }),
  transcode.submission({ clip }, { idempotencyKey: `${clip}:transcode`, priority: 3 }),
];
