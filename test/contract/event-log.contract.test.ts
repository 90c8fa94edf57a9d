import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ensureStreams } from '../../src/log/streams.ts';
import { names } from '../../src/log/subjects.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { loadConfig } from '../../src/platform/config.ts';
import { connectTestNats, testNamespace } from '../support/servers.ts';
import { crashes, faultsDoNoHarm, leaderChanges } from './log/faults.ts';
import { lostAnswersDoNoHarm } from './log/lost-answers.ts';
import { racesAreWonOnce } from './log/races.ts';
import { anyTwoWritersLeaveALegalHistory } from './log/random-writers.ts';
import { readingIsComplete } from './log/reading.ts';
import { streamsAreMade } from './log/streams.ts';
import { cluster, type Ground, ownServer, prepare, sharedServer, type World } from './log/world.ts';

/** What the log promises, on one server and on a cluster of three. */
describe.each([
  { where: 'one server', start: sharedServer, mortal: ownServer, faults: crashes },
  { where: 'three servers, three replicas', start: cluster, mortal: undefined, faults: leaderChanges },
])('the event log on $where', ({ start, mortal, faults }) => {
  const namespace = testNamespace(import.meta.url);
  let world: World;
  let ground: Ground;
  beforeAll(async () => {
    world = await start();
    ground = await prepare(world, namespace);
  });
  afterAll(async () => {
    await ground?.clear();
    await world?.stop();
  });

  streamsAreMade(
    () => world,
    () => ground,
    namespace,
  );
  racesAreWonOnce(() => ground);
  anyTwoWritersLeaveALegalHistory(() => ground);
  lostAnswersDoNoHarm(() => ground);
  readingIsComplete(() => world, namespace);
  // A server that others share is not killed: there the faults strike one of its own.
  faultsDoNoHarm(mortal ?? (async () => ({ ...world, stop: async () => {} })), namespace, faults);
});

test('a server that is alone is refused as the home of three replicas, and the setting is named', async () => {
  const nc = await connectTestNats();
  const config = { ...loadConfig({}), replicas: 3 };
  const streams = ensureStreams({ nc, names: names('alone_'), config, logger: silentLogger });
  await expect(streams).rejects.toMatchObject({
    code: 'config_invalid',
    details: { key: 'TASKLEDGER_REPLICAS' },
  });
  await nc.close();
});
