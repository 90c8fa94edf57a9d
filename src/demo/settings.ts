import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { TaskledgerError } from '../domain/errors.ts';
import { DEMO_NAMES, type Demo, type DemoName } from './demo.ts';
import { filesDemo } from './files/files.ts';
import { ffmpegIsUsable } from './video/ffmpeg.ts';
import { videoDemo } from './video/video.ts';

/** Attempts at once: the machine is shared with the servers. */
const DEFAULT_CONCURRENCY = 2;

/**
 * The demo of that name; without one the video pipeline where ffmpeg can be had, else the one that needs Node alone.
 * Throws `config_invalid` for a name that is none, and for `video` without ffmpeg.
 */
export async function chooseDemo(name: string | undefined): Promise<Demo> {
  if (name !== undefined && !isDemoName(name))
    throw new TaskledgerError('config_invalid', {
      key: '--demo',
      reason: `${name} is none of ${DEMO_NAMES.join(', ')}`,
    });
  if (name === 'files') return filesDemo;
  if (await ffmpegIsUsable()) return videoDemo;
  if (name === 'video')
    throw new TaskledgerError('config_invalid', {
      key: '--demo',
      reason: 'video needs ffmpeg and ffprobe with libx264 on PATH; "files" needs nothing',
    });
  return filesDemo;
}

const isDemoName = (name: string): name is DemoName => DEMO_NAMES.some((known) => known === name);

export interface ProcessSettings {
  readonly demo: Demo;
  /** Exists. */
  readonly mediaDir: string;
  readonly concurrency: number;
  /** Pause between two items, in ms. */
  readonly everyMs: number;
  /** Items to make before the process ends; Infinity for a process that runs until it is stopped. */
  readonly items: number;
}

/** The arguments of the demo's processes: `--demo`, `--data`, `--concurrency`, `--every-ms`, `--items`. */
export async function readSettings(args: readonly string[]): Promise<ProcessSettings> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      demo: { type: 'string' },
      data: { type: 'string', default: '.taskledger' },
      concurrency: { type: 'string' },
      'every-ms': { type: 'string' },
      items: { type: 'string' },
    },
  });
  const demo = await chooseDemo(values.demo);
  const mediaDir = join(values.data, 'media', demo.name);
  await mkdir(mediaDir, { recursive: true });
  return {
    demo,
    mediaDir,
    concurrency: wholeNumber('--concurrency', values.concurrency) ?? DEFAULT_CONCURRENCY,
    everyMs: wholeNumber('--every-ms', values['every-ms']) ?? demo.everyMs,
    items: wholeNumber('--items', values.items) ?? Number.POSITIVE_INFINITY,
  };
}

function wholeNumber(key: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d+$/.test(text))
    throw new TaskledgerError('config_invalid', { key, reason: `${text} is not a whole number` });
  return Number(text);
}
