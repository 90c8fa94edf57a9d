import { setTimeout as delay } from 'node:timers/promises';
import { createApi } from '../cli/api.ts';
import { createLogger } from '../observe/log.ts';
import { loadClientConfig, loadConfig } from '../platform/config.ts';
import { readSettings } from './settings.ts';
import { createSubmitter } from './submitter.ts';

// A process that makes items and submits their tasks over HTTP, at a gentle rate.

const settings = await readSettings(process.argv.slice(2));
const logger = createLogger(loadConfig(), { demo: settings.demo.name });

const asked = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => asked.abort());

const submitter = createSubmitter({ ...settings, api: createApi(loadClientConfig()), logger });
try {
  while (!asked.signal.aborted && submitter.made() < settings.items) {
    await submitter.runOnce();
    await delay(settings.everyMs, undefined, { signal: asked.signal });
  }
} catch (error) {
  if (!asked.signal.aborted) throw error;
}
