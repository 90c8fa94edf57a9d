import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { startNatsServer } from '../../src/platform/embedded/nats-process.ts';
import { choosePort, freePort } from '../../src/platform/embedded/ports.ts';
import { startPostgres } from '../../src/platform/embedded/postgres-process.ts';
import { describeProcess } from '../../src/platform/embedded/process-info.ts';
import { eventually } from '../support/eventually.ts';
import { findTestNatsServer } from '../support/local-backend.ts';
import { needs } from '../support/needs.ts';
import { startTestCluster } from '../support/servers.ts';

const log = (): void => {};
const isRoot = process.getuid?.() === 0;

async function scratchDir(parent = tmpdir()): Promise<string> {
  const dir = await mkdtemp(join(parent, 'taskledger-embedded-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  await chmod(dir, 0o755);
  return dir;
}

async function postgresIn(dir: string, lines: string[] = []) {
  const server = await startPostgres({ dir, settings: { fsync: 'off' }, log: (line) => lines.push(line) });
  onTestFinished(() => server.stop());
  return server;
}

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

async function natsIn(dir: string, options: { port?: number } = {}) {
  const { bin } = await findTestNatsServer(log);
  const server = await startNatsServer({ bin, dir, log, ...options });
  onTestFinished(() => server.stop());
  return server;
}

async function publishedIn(url: string, publish: number): Promise<number> {
  const connection = await connect({ servers: url });
  const jsm = await jetstreamManager(connection);
  await jsm.streams.add({ name: 'S', subjects: ['s'] });
  for (let sent = 0; sent < publish; sent += 1) await jetstream(connection).publish('s', 'x');
  const { state } = await jsm.streams.info('S');
  await connection.close();
  return state.messages;
}

/** A process of its own that owns a nats-server and a Postgres. */
async function ownerIn(
  dir: string,
): Promise<{ owner: ChildProcess; nats: number; natsUrl: string; postgres: number }> {
  const script = fileURLToPath(new URL('../support/server-owner.ts', import.meta.url));
  const owner = spawn(process.execPath, ['--import', 'tsx', script, dir], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  onTestFinished(() => void owner.kill('SIGKILL'));
  const [line]: string[] = await once(createInterface({ input: owner.stdout }), 'line');
  return { owner, ...JSON.parse(line ?? '{}') };
}

const isGone = async (pid: number): Promise<boolean> => (await describeProcess(pid)) === undefined;

test('Postgres starts as whoever we are, keeps its data over a stop and lets nobody in without the password', async () => {
  const dir = await scratchDir();
  const first = await postgresIn(dir);
  await query(first.url, 'create table kept as select 7 as n');
  if (isRoot) expect((await stat(`/proc/${first.pid}`)).uid).not.toBe(0);
  const stranger = new URL(first.url);
  stranger.password = 'guess';
  await expect(query(stranger.href, 'select 1')).rejects.toThrow(/password authentication failed/);
  await first.stop();
  expect(await isGone(first.pid)).toBe(true);

  const second = await postgresIn(dir);
  expect(await query(second.url, 'select n from kept')).toEqual([{ n: 7 }]);
});

test('Postgres comes back on the same port with its data after SIGKILL, with clients connected', async () => {
  const server = await postgresIn(await scratchDir());
  const client = new pg.Client({ connectionString: server.url });
  client.on('error', () => {});
  await client.connect();
  await client.query('create table kept as select 7 as n');
  const before = server.pid;
  await server.kill();
  await server.restart();
  expect(server.pid).not.toBe(before);
  expect(await query(server.url, 'select n from kept')).toEqual([{ n: 7 }]);
});

test('a pid file left by a killed Postgres does not stop the next start, even when the pid belongs to another program now', async () => {
  const dir = await scratchDir();
  const first = await postgresIn(dir);
  const pidFile = join(dir, 'data', 'postmaster.pid');
  const content = await readFile(pidFile, 'utf8');
  await first.stop();
  await writeFile(pidFile, content.replace(/^\d+/, String(process.ppid)));
  if (isRoot) await chmod(pidFile, 0o644);
  const second = await postgresIn(dir);
  expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }]);
});

test('an initdb that was interrupted is started over', async () => {
  const dir = await scratchDir();
  const first = await postgresIn(dir);
  await first.stop();
  await rm(join(dir, 'data', 'PG_VERSION'));
  const second = await postgresIn(dir);
  expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }]);
});

test(
  'as root in a folder that no other user may enter, Postgres gets a stand-in folder and says so',
  needs('root', isRoot),
  async () => {
    const closed = await scratchDir(homedir());
    await chmod(closed, 0o700);
    const lines: string[] = [];
    const server = await postgresIn(closed, lines);
    const [row] = (await query(server.url, "select current_setting('data_directory') as dir")) as {
      dir: string;
    }[];
    expect(row?.dir).not.toContain(closed);
    expect(lines.join()).toContain('cannot enter');
    await server.stop();
    await rm(join(row?.dir ?? '', '..'), { recursive: true, force: true });
  },
);

test('a data folder in use by a living process is refused, naming that process', async () => {
  const dir = await scratchDir();
  const postgres = await postgresIn(join(dir, 'postgres'));
  await expect(startPostgres({ dir: join(dir, 'postgres'), log })).rejects.toMatchObject({
    code: 'server_in_use',
    details: { pid: postgres.pid, ownerPid: process.pid },
  });
  const nats = await natsIn(join(dir, 'nats'));
  await expect(natsIn(join(dir, 'nats'))).rejects.toMatchObject({
    code: 'server_in_use',
    details: { pid: nats.pid },
  });
});

test('nats-server keeps its streams over a stop and over SIGKILL', async () => {
  const dir = await scratchDir();
  const first = await natsIn(dir);
  expect(await publishedIn(first.url, 3)).toBe(3);
  await first.stop();
  const second = await natsIn(dir, { port: first.port });
  expect(second.url).toBe(first.url);
  expect(await publishedIn(second.url, 2)).toBe(5);
  await second.kill();
  const third = await natsIn(dir);
  expect(await publishedIn(third.url, 0)).toBe(5);
});

test('a server that cannot start says why, from its own log', async () => {
  const holder = await natsIn(await scratchDir());
  await expect(natsIn(await scratchDir(), { port: holder.port })).rejects.toMatchObject({
    code: 'server_start_failed',
    message: expect.stringContaining('address already in use'),
  });
  await expect(startNatsServer({ bin: '/nonexistent', dir: await scratchDir() })).rejects.toMatchObject({
    code: 'server_start_failed',
    message: expect.stringContaining('ENOENT'),
  });
});

test('a frozen server can still be stopped', async () => {
  const server = await natsIn(await scratchDir());
  await server.kill('SIGSTOP');
  await server.stop();
  expect(await isGone(server.pid)).toBe(true);
});

test('servers outlive a Ctrl+C that their owner handles, and end when their owner is killed', async () => {
  const { owner, nats, natsUrl, postgres } = await ownerIn(await scratchDir());
  process.kill(-(owner.pid ?? 0), 'SIGINT');
  expect(await publishedIn(natsUrl, 1)).toBe(1);
  expect(await isGone(postgres)).toBe(false);
  owner.kill('SIGKILL');
  await eventually(async () => (await isGone(nats)) && (await isGone(postgres)));
});

test('a server whose owner and watchdog are both dead is stopped by the next start in its folder', async () => {
  const dir = await scratchDir();
  const abandoned = await natsIn(dir);
  // What the record says once the owner is gone: a process that started at another time has its pid.
  const recordFile = join(dir, 'server.json');
  const record = JSON.parse(await readFile(recordFile, 'utf8'));
  await writeFile(recordFile, JSON.stringify({ ...record, ownerStartedAt: 'another time' }));
  const next = await natsIn(dir);
  expect(await isGone(abandoned.pid)).toBe(true);
  expect(await publishedIn(next.url, 1)).toBe(1);
});

test('a cluster of three elects a leader, works on with a node killed, and takes it back', async () => {
  const cluster = await startTestCluster();
  onTestFinished(() => cluster.stop());
  const connection = await connect({ servers: [...cluster.urls], reconnectTimeWait: 50 });
  onTestFinished(() => connection.close());
  const jsm = await jetstreamManager(connection);
  await jsm.streams.add({ name: 'R3', subjects: ['r3'], num_replicas: 3 });
  const leader = (await jsm.streams.info('R3')).cluster?.leader;
  const node = cluster.nodes.find(({ name }) => name === leader);
  const ports = cluster.nodes.map(({ port }) => port);
  await jetstream(connection).publish('r3', 'before');
  await node?.kill();
  await eventually(() => jetstream(connection).publish('r3', 'during', { msgID: 'during', timeout: 1_000 }), {
    timeoutMs: 30_000,
  });
  await node?.restart();
  await cluster.whenReady();
  expect(cluster.nodes.map(({ port }) => port)).toEqual(ports);
  await eventually(
    async () => {
      const info = await jsm.streams.info('R3');
      expect(info.state.messages).toBe(2);
      expect(info.cluster?.replicas?.filter(({ current }) => current)).toHaveLength(2);
    },
    { timeoutMs: 30_000 },
  );
});

test('a taken port is named and replaced, unless somebody asked for exactly this one', async () => {
  const { port } = await natsIn(await scratchDir());
  const lines: string[] = [];
  const other = await choosePort({ what: 'NATS', preferred: port, log: (line) => lines.push(line) });
  expect(other).not.toBe(port);
  expect(lines).toEqual([`Port ${port} for NATS is taken; using ${other} instead.`]);
  await expect(
    choosePort({ what: 'NATS', preferred: port, pinnedBy: 'NATS_PORT', log }),
  ).rejects.toMatchObject({ code: 'port_taken' });
  const free = await freePort();
  expect(await choosePort({ what: 'NATS', preferred: free, pinnedBy: 'NATS_PORT', log })).toBe(free);
});
