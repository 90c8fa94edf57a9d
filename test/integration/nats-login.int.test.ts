import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nkeys } from '@nats-io/transport-node';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createWorker } from '../../src/index.ts';
import { ensureStreams } from '../../src/log/streams.ts';
import { names as namesOf } from '../../src/log/subjects.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { loadConfig } from '../../src/platform/config.ts';
import { connectNats, natsOptions } from '../../src/platform/nats.ts';
import { watchNats } from '../../src/platform/nats-watch.ts';
import { eventually } from '../support/eventually.ts';
import { type NatsDoor, startNatsDoor } from '../support/nats-door.ts';
import { recordingLogger } from '../support/read-models.ts';
import { connectTestNats, testNamespace, testNatsUrl } from '../support/servers.ts';

const prefix = testNamespace(import.meta.url);
/** The client by itself gives up at the second refusal. */
const MANY = 4;

let door: NatsDoor;
const cleanUps: (() => unknown)[] = [];
beforeAll(async () => {
  door = await startNatsDoor(testNatsUrl());
});
afterEach(async () => {
  door.admit();
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});
afterAll(() => door.close());

test('a connection whose login is refused for a while comes back, says why it was away, and says it once', async () => {
  const nc = await connectNats({ ...loadConfig({}), natsUrl: door.url }, 'login');
  cleanUps.push(() => nc.close());
  const logger = recordingLogger();
  const watch = watchNats(nc, logger);
  expect(watch.trouble()).toBeUndefined();
  const before = door.refusals();
  door.refuse();
  await eventually(() => expect(door.refusals()).toBeGreaterThanOrEqual(before + MANY));
  expect(watch.trouble()).toMatch(/^NATS has been away for \d+ s \(.*authorization violation.*\)/i);
  door.admit();
  await eventually(() => nc.rtt());
  await eventually(() => expect(watch.trouble()).toBeUndefined());
  expect(logger.lines.map(({ level, message }) => [level, message.split(':')[0]])).toEqual([
    ['warn', 'NATS is away'],
    ['error', 'NATS refuses the login'],
    ['info', 'NATS answers again'],
  ]);
});

test('a worker whose login is refused for a while goes on', async () => {
  const nc = await connectTestNats();
  cleanUps.push(() => nc.close());
  const names = namesOf(prefix);
  await ensureStreams({ nc, names, config: loadConfig({}), logger: silentLogger });
  const worker = createWorker({
    nats: door.url,
    prefix,
    types: { mail: async () => null },
    logger: silentLogger,
  });
  cleanUps.push(() => worker.stop());
  await worker.start();
  const waitingPulls = async () =>
    (await nc.request(`$JS.API.CONSUMER.INFO.${names.streams.tasks}.${names.workConsumer('mail')}`)).json<{
      num_waiting: number;
    }>().num_waiting;
  await eventually(async () => expect(await waitingPulls()).toBeGreaterThan(0));
  const before = door.refusals();
  door.refuse();
  // Its main connection and that of its leases.
  await eventually(() => expect(door.refusals()).toBeGreaterThanOrEqual(before + 2 * MANY));
  await eventually(async () => expect(await waitingPulls()).toBe(0));
  door.admit();
  await eventually(async () => expect(await waitingPulls()).toBeGreaterThan(0));
});

test('credentials that were replaced are used at the next login, and a file that is none is passed over', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'creds-'));
  cleanUps.push(() => rm(dir, { recursive: true }));
  const natsCreds = join(dir, 'user.creds');
  await writeFile(natsCreds, credentials('first'));
  const { authenticator } = natsOptions({ ...loadConfig({}), natsCreds }, 'creds');
  const jwt = () => {
    if (authenticator === undefined || Array.isArray(authenticator)) throw new Error('one was expected');
    return (authenticator('nonce') as { jwt: string }).jwt;
  };
  expect(jwt()).toBe('first');
  await writeFile(natsCreds, 'half of a fi');
  expect(jwt()).toBe('first');
  await writeFile(natsCreds, credentials('second'));
  expect(jwt()).toBe('second');
  await rm(natsCreds);
  expect(jwt()).toBe('second');
});

test('credentials that are none at the start are a fault of the configuration', async () => {
  await expect(connectNats({ ...loadConfig({}), natsCreds: '/nowhere/user.creds' }, 'creds')).rejects.toThrow(
    expect.objectContaining({
      code: 'config_invalid',
      message: expect.stringMatching(/NATS_CREDS.*no such file/),
    }),
  );
});

function credentials(jwt: string): string {
  const seed = new TextDecoder().decode(nkeys.createUser().getSeed());
  const block = (kind: string, text: string) => `-----BEGIN ${kind}-----\n${text}\n------END ${kind}------\n`;
  return `${block('NATS USER JWT', jwt)}\n${block('USER NKEY SEED', seed)}`;
}
