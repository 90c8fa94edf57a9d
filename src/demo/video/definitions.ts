import { z } from 'zod';
import { defineTask } from '../../index.ts';

/** A clip is a folder under the media folder that holds `source.mp4`. */
export const ClipSchema = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/);
/** Path below the media folder. */
const file = z.string();
const count = z.int().min(0);

export const transcode = defineTask({
  type: 'transcode',
  payload: z.strictObject({
    clip: ClipSchema,
    /** Width of the copy in pixels; the height follows. */
    width: z.int().min(64).max(3_840).default(480),
    /** Constant rate factor: 0 is lossless, 51 the worst. */
    crf: z.int().min(0).max(51).default(28),
  }),
  result: z.strictObject({
    file,
    bytes: count,
    seconds: z.number(),
    width: count,
    height: count,
    codec: z.string(),
  }),
});

export const thumbnail = defineTask({
  type: 'thumbnail',
  payload: z.strictObject({ clip: ClipSchema, width: z.int().min(16).max(3_840).default(240) }),
  result: z.strictObject({ file, bytes: count, width: count, height: count }),
});

export const metadata = defineTask({
  type: 'metadata',
  payload: z.strictObject({ clip: ClipSchema }),
  result: z.strictObject({
    container: z.string(),
    bytes: count,
    seconds: z.number(),
    bitsPerSecond: count,
    video: z.strictObject({
      codec: z.string(),
      width: count,
      height: count,
      framesPerSecond: z.number(),
      pixelFormat: z.string(),
    }),
    audio: z.strictObject({ codec: z.string(), sampleRate: count, channels: count }).nullable(),
  }),
});

export const analysis = defineTask({
  type: 'analysis',
  payload: z.strictObject({ clip: ClipSchema }),
  result: z.strictObject({
    /** Stretches without a picture. */
    blackSeconds: z.number(),
    /** Brightness over all frames, 0 to 255. */
    meanLuma: z.number(),
    frames: count,
    /** Integrated loudness (EBU R 128), in LUFS. */
    loudness: z.number(),
  }),
});
