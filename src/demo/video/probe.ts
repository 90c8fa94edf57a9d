import { z } from 'zod';
import { NotRetryable } from '../../index.ts';
import { run } from './ffmpeg.ts';

/** The part of ffprobe's answer that is used; it gives most numbers as text. */
const AnswerSchema = z.object({
  format: z.object({
    format_name: z.string(),
    size: z.coerce.number(),
    duration: z.coerce.number().default(0),
    bit_rate: z.coerce.number().default(0),
  }),
  streams: z.array(
    z.object({
      codec_type: z.string(),
      codec_name: z.string().default('unknown'),
      width: z.number().default(0),
      height: z.number().default(0),
      pix_fmt: z.string().default('unknown'),
      avg_frame_rate: z.string().default('0/1'),
      sample_rate: z.coerce.number().default(0),
      channels: z.number().default(0),
    }),
  ),
});

/** What ffprobe knows of a media file. Throws NotRetryable when it holds no picture. */
export async function probe(path: string, signal: AbortSignal) {
  const lines: string[] = [];
  const format = ['-loglevel', 'error', '-print_format', 'json', '-show_format', '-show_streams'];
  await run('ffprobe', [...format, path], { signal, onLine: (line) => lines.push(line) });
  const { format: container, streams } = AnswerSchema.parse(JSON.parse(lines.join('\n')));
  const video = streams.find(({ codec_type }) => codec_type === 'video');
  const audio = streams.find(({ codec_type }) => codec_type === 'audio');
  if (video === undefined) throw new NotRetryable(`${path} holds no picture`, { code: 'bad_clip' });
  return {
    container: container.format_name,
    bytes: container.size,
    seconds: container.duration,
    bitsPerSecond: Math.round(container.bit_rate),
    video: {
      codec: video.codec_name,
      width: video.width,
      height: video.height,
      framesPerSecond: ratio(video.avg_frame_rate),
      pixelFormat: video.pix_fmt,
    },
    audio:
      audio === undefined
        ? null
        : { codec: audio.codec_name, sampleRate: audio.sample_rate, channels: audio.channels },
  };
}

/** `30000/1001` as a number. */
function ratio(text: string): number {
  const [over = 0, under = 1] = text.split('/').map(Number);
  return under === 0 ? 0 : Math.round((over / under) * 100) / 100;
}
