import { createWorker } from '../index.ts';
import { readSettings } from './settings.ts';

// A process that works on the demo's tasks. NATS comes from the configuration (NATS_URL and so on).

const { demo, mediaDir, concurrency } = await readSettings(process.argv.slice(2));
const worker = createWorker({ id: `demo-${demo.name}`, types: demo.handlers(mediaDir), concurrency });

const stop = (): void => {
  worker.stop().catch((error: unknown) => {
    console.error(error);
    process.exitCode = 1;
  });
};
process.once('SIGTERM', stop);
process.once('SIGINT', stop);
await worker.start();
