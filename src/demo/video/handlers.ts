import { join } from 'node:path';
import type { HandlerContext, TypedHandler } from '../../index.ts';
import { produce } from '../produce.ts';
import { SOURCE_FILE } from './clips.ts';
import { analysis, metadata, thumbnail, transcode } from './definitions.ts';
import { run } from './ffmpeg.ts';
import { probe } from './probe.ts';

/** What all programs are told: say only what went wrong, ask nothing, leave the machine some room. */
const QUIETLY = ['-loglevel', 'error', '-nostdin', '-y', '-threads', '1'];

/** The four steps of the pipeline over clips in `mediaDir`. */
export function videoHandlers(mediaDir: string): Readonly<Record<string, TypedHandler>> {
  const sourceOf = (clip: string): string => join(mediaDir, clip, SOURCE_FILE);

  return {
    transcode: transcode.handle(async (context) => {
      const { payload, signal } = context;
      const { clip, width, crf } = payload;
      const { seconds } = await probe(sourceOf(clip), signal);
      const file = `${clip}/${width}.mp4`;
      await produce(mediaDir, file, context, (part) =>
        run(
          'ffmpeg',
          [
            [...QUIETLY, '-progress', 'pipe:1', '-i', sourceOf(clip), '-vf', `scale=${width}:-2`],
            ['-c:v', 'libx264', '-preset', 'veryfast', '-crf', String(crf)],
            ['-c:a', 'aac', '-b:a', '96k', '-movflags', '+faststart', part],
          ],
          { signal, onLine: (line) => reportProgress(line, seconds, context) },
        ),
      );
      const made = await probe(join(mediaDir, file), signal);
      const { codec, width: madeWidth, height } = made.video;
      return { file, bytes: made.bytes, seconds: made.seconds, codec, width: madeWidth, height };
    }),

    thumbnail: thumbnail.handle(async (context) => {
      const { payload, signal } = context;
      const { clip, width } = payload;
      const file = `${clip}/thumbnail.jpg`;
      // The filter chooses the frame that is most like its neighbours, so not the black one at the start.
      const filter = `thumbnail=50,scale=${width}:-2`;
      await produce(mediaDir, file, context, (part) =>
        run('ffmpeg', [QUIETLY, '-i', sourceOf(clip), '-vf', filter, '-frames:v', '1', '-q:v', '4', part], {
          signal,
        }),
      );
      const { video, bytes } = await probe(join(mediaDir, file), signal);
      return { file, bytes, width: video.width, height: video.height };
    }),

    metadata: metadata.handle(({ payload, signal }) => probe(sourceOf(payload.clip), signal)),

    analysis: analysis.handle(async ({ payload, signal }) => {
      const luma: number[] = [];
      const said = await run(
        'ffmpeg',
        [
          ['-loglevel', 'info', '-nostats', '-nostdin', '-threads', '1', '-i', sourceOf(payload.clip)],
          ['-vf', 'blackdetect=d=0.1,signalstats,metadata=print:key=lavfi.signalstats.YAVG:file=-'],
          ['-af', 'ebur128=framelog=verbose', '-f', 'null', '-'],
        ],
        {
          signal,
          onLine: (line) => {
            const [, value] = /YAVG=([\d.]+)/.exec(line) ?? [];
            if (value !== undefined) luma.push(Number(value));
          },
        },
      );
      const text = said.join('\n');
      const black = [...text.matchAll(/black_duration:([\d.]+)/g)].map(([, seconds]) => Number(seconds));
      const [, loudness = '-70'] = /Integrated loudness:\s+I:\s+(-?[\d.]+) LUFS/.exec(text) ?? [];
      return {
        blackSeconds: rounded(sum(black)),
        meanLuma: rounded(sum(luma) / Math.max(1, luma.length)),
        frames: luma.length,
        loudness: Number(loudness),
      };
    }),
  };
}

/** A line of `-progress`, such as `out_time_us=2480000`. */
function reportProgress(line: string, seconds: number, context: Pick<HandlerContext, 'heartbeat'>): void {
  const [, micros] = /^out_time_us=(\d+)$/.exec(line) ?? [];
  if (micros === undefined || seconds === 0) return;
  context.heartbeat({ percent: Math.min(100, Math.round(Number(micros) / seconds / 10_000)) });
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);
const rounded = (value: number): number => Math.round(value * 100) / 100;
