#!/usr/bin/env node
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { systemClock } from '../platform/clock.ts';
import { runCommandLine } from './program.ts';

// A reader that has seen enough (`| head`) closes the pipe: that is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

process.exitCode = await runCommandLine(process.argv.slice(2), {
  out: (line) => void process.stdout.write(line),
  err: (line) => void process.stderr.write(line),
  columns: process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY,
  env: process.env,
  clock: systemClock,
  stdin: () => text(process.stdin),
  readFile: (path) => readFile(path, 'utf8'),
  pause: async (ms) => {
    await pause(ms);
  },
  fetch,
});
