/**
 * A process whose service stops after the milliseconds of its first argument; its grace is the second. With `slow` as the
 * third it does not start before it is told to stop; with `twice` it tells itself again at once what it is told.
 */
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { createLogger } from '../../src/observe/log.ts';
import { runProcess } from '../../src/platform/process.ts';
import { serviceGroup } from '../../src/platform/service.ts';

const [stopMs, graceMs, how] = process.argv.slice(2);
const logger = createLogger({ logLevel: 'info' });
// A service that does something keeps its process alive.
setInterval(() => {}, 1_000);
const last = { name: 'the slow part', start: async () => {}, stop: () => pause(Number(stopMs)) };
const group = serviceGroup('inner', [last]);

if (how === 'twice')
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      process.once(signal, () => logger.info({}, 'told twice'));
      process.kill(process.pid, signal);
    });

await runProcess({
  async start(stopping) {
    logger.info({}, 'starting');
    if (how === 'slow') await once(stopping, 'abort');
    const service = serviceGroup('outer', [group]);
    await service.start();
    logger.info({}, 'running');
    return service;
  },
  graceMs: Number(graceMs),
  logger,
});
