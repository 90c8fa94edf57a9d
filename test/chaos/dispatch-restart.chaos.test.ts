import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDispatcher, type Dispatcher } from '../../src/dispatch/dispatcher.ts';
import { createLogger } from '../../src/observe/log.ts';
import { type NatsServer, startNatsServer } from '../../src/platform/embedded/nats-process.ts';
import { eventually } from '../support/eventually.ts';
import { findTestNatsServer } from '../support/local-backend.ts';
import { openTaskWorld, type TaskWorld } from '../support/task-world.ts';

const logger = createLogger({ logLevel: 'error' });

/** A server that dies takes the readers' consumers with it, and answers nobody for a while. */
describe('dispatch on a server that dies and comes back', () => {
  let bin: string;
  let dir: string;
  let server: NatsServer;
  let world: TaskWorld;
  let dispatcher: Dispatcher;

  beforeAll(async () => {
    ({ bin } = await findTestNatsServer(() => {}));
    dir = await mkdtemp(join(tmpdir(), 'taskledger-dispatch-'));
    server = await startNatsServer({ bin, dir });
    world = await openTaskWorld('reborn_', { leaderLeaseMs: 3_000 }, [server.url]);
    const { nc, log, clock } = await world.connect();
    const { names, config } = world;
    dispatcher = createDispatcher({ nc, log, names, config, clock, logger });
    await dispatcher.start();
    await dispatcher.whenLeader();
    await world.work();
  });

  afterAll(async () => {
    await dispatcher?.stop();
    await world?.stop();
    await server?.stop();
    await rm(dir, { recursive: true, force: true });
  });

  it('leads again, queues what was submitted, and hears the alarm', async () => {
    const before = await world.ingest();
    await eventually(() => expect(world.kindsOf(before).at(-1)).toBe('COMPLETED'));

    await server.kill();
    const during = world.ingest();
    await eventually(() => expect(dispatcher.isLeader()).toBe(false));
    server = await startNatsServer({ bin, dir, port: server.port });

    const id = await during;
    await eventually(() => expect(world.kindsOf(id).at(-1)).toBe('COMPLETED'), { timeoutMs: 60_000 });
    await dispatcher.whenLeader();
    const rungBefore = dispatcher.stats().alarm.rung;
    const delayed = await world.ingest({ runAt: Date.now() + 5_000 });
    await eventually(() => expect(world.kindsOf(delayed).at(-1)).toBe('COMPLETED'), { timeoutMs: 60_000 });
    await eventually(() => expect(dispatcher.stats().alarm.rung).toBeGreaterThan(rungBefore), {
      timeoutMs: 60_000,
    });
  });
});
