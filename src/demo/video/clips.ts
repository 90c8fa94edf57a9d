import { truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './ffmpeg.ts';

/** ffmpeg's own picture sources: no media file is needed to have moving pictures. */
const SOURCES = [
  'testsrc2=size=640x360:rate=25',
  'smptehdbars=size=640x360:rate=25',
  'mandelbrot=size=640x360:rate=25',
  'life=size=640x360:rate=25:mold=10:ratio=0.1:death_color=#203060:life_color=#80ff80',
  'gradients=size=640x360:rate=25:speed=0.05',
  'rgbtestsrc=size=640x360:rate=25',
] as const;

export const SOURCE_FILE = 'source.mp4';

/** Renders clip number `n` with sound, fading in from black: a picture source and a tone that differ from the clip before. */
export async function renderClip(dir: string, { n, seconds }: { n: number; seconds: number }): Promise<void> {
  const picture = SOURCES[n % SOURCES.length] ?? SOURCES[0];
  const tone = `sine=frequency=${220 + (n % 12) * 55}:sample_rate=44100`;
  await run('ffmpeg', [
    ['-loglevel', 'error', '-nostdin', '-y'],
    ['-f', 'lavfi', '-i', picture, '-f', 'lavfi', '-i', tone],
    ['-t', String(seconds), '-vf', 'fade=t=in:st=0.5:d=0.5,format=yuv420p'],
    ['-c:v', 'libx264', '-preset', 'veryfast', '-threads', '2', '-c:a', 'aac', '-shortest'],
    join(dir, SOURCE_FILE),
  ]);
}

/** Cuts a clip off in its middle, as a broken upload would. */
export const damageClip = (dir: string): Promise<void> => truncate(join(dir, SOURCE_FILE), 20_000);
