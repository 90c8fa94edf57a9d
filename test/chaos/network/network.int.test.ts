import { mkdtemp, readFile, readlink, rm } from 'node:fs/promises';
import { connect as dial } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { launchServer } from '../../../src/platform/embedded/child-server.ts';
import { addressesOf } from '../../../src/platform/embedded/network-home.ts';
import { eventually } from '../../support/eventually.ts';
import { needs } from '../../support/needs.ts';
import { openNetwork } from './choose.ts';
import { run, runIn } from './command.ts';
import { CLIENTS, type Home, NETWORK_KINDS, type NetworkKind } from './network.ts';

/** Why namespaces cannot be had here, when they cannot. */
const missing = await openNetwork('namespaces', () => {}).then(
  async (network): Promise<undefined> => {
    await network.close();
    return undefined;
  },
  (error: Error) => error.message,
);
const namespaces = needs(
  `network namespaces${missing === undefined ? '' : ` (${missing})`}`,
  missing === undefined,
);

const PORT = 4_222;
/** Says whatever it hears to everybody who is connected. */
const CHAT = `
  const all = new Set();
  require('node:net').createServer((socket) => {
    all.add(socket);
    socket.on('data', (chunk) => { for (const each of all) each.write(chunk); });
    socket.on('error', () => {});
    socket.on('close', () => all.delete(socket));
  }).listen(Number(process.argv[1]), process.argv[2], () => console.log('listening'));`;
/** Dials, speaks, and tells what came of it. */
const SPEAK = `
  const [, host, port] = process.argv;
  const over = (word) => { console.log(word); process.exit(); };
  setTimeout(() => over('silence'), 5000);
  const socket = require('node:net').connect(Number(port), host, () => socket.write('hello'));
  socket.on('data', () => over('heard'));
  socket.on('error', () => over('reset'));`;

async function setup(kind: NetworkKind) {
  const dir = await mkdtemp(join(tmpdir(), 'taskledger-network-'));
  const network = await openNetwork(kind, () => {});
  const cleanUps: (() => unknown)[] = [
    () => network.close(),
    () => rm(dir, { recursive: true, force: true }),
  ];
  onTestFinished(async () => {
    for (const cleanUp of cleanUps) await cleanUp();
  });
  const startAt = async (home: Home, args: readonly string[], user?: { uid: number; gid: number }) => {
    const server = await launchServer({
      name: home.part,
      bin: process.execPath,
      args,
      dir: join(dir, home.part),
      logFile: join(dir, home.part, 'log'),
      namespace: home.network?.namespace,
      user,
      stopSignal: 'SIGTERM',
    });
    cleanUps.unshift(() => server.stop());
    return server;
  };
  const chatAt = async (part: string) => {
    const home = await network.home(part);
    const port = await home.port(PORT);
    const server = await startAt(home, ['-e', CHAT, String(port), home.bind]);
    await eventually(async () => (await server.output()).includes('listening'));
    return { home, port };
  };
  const connectTo = async (host: string, port: number) => {
    const socket = dial(port, host);
    cleanUps.unshift(() => socket.destroy());
    let heard = '';
    const errors: string[] = [];
    socket.on('data', (chunk) => {
      heard += chunk.toString();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => errors.push(error.code ?? error.message));
    return { say: (words: string) => socket.write(words), heard: () => heard, errors };
  };
  return {
    network,
    startAt,
    chatAt,
    connectTo,
    /** A chat, somebody on the way of the clients to it, and somebody on whose way no fault is. */
    async conversation() {
      const door = await chatAt('chat');
      const link = await network.open({ name: 'clients~chat', from: CLIENTS, to: [door] });
      const dialLink = () => {
        const [host = '', port] = (link.dials[0] ?? '').split(':');
        return connectTo(host, Number(port));
      };
      const hurt = await dialLink();
      const safe = await connectTo(addressesOf(door.home.network).reach, door.port);
      hurt.say('hi ');
      await eventually(() => expect([hurt.heard(), safe.heard()]).toEqual(['hi ', 'hi ']));
      /** Whatever is to arrive has arrived once as much as this has gone to and fro. */
      const settle = async () => {
        for (let n = 1; n <= 20; n++) {
          const mark = `${n}. `;
          const before = safe.heard().length;
          safe.say(mark);
          await eventually(() => safe.heard().slice(before).includes(mark), { intervalMs: 1 });
        }
      };
      return { link, hurt, safe, settle, dialLink };
    },
  };
}

const speak = (home: Home, address: string): Promise<string> => {
  const command = [process.execPath, '-e', SPEAK, ...address.split(':')];
  const [bin = '', ...args] = command;
  return home.network === undefined ? run(bin, args) : runIn(home.network.namespace, command);
};

describe.each(NETWORK_KINDS)('over %s', (kind) => {
  const where = kind === 'namespaces' ? namespaces : {};

  test('a cut resets who speaks and who dials, and heals', where, async () => {
    const { link, hurt, dialLink } = await (await setup(kind)).conversation();
    await link.cut();
    hurt.say('lost');
    await eventually(() => expect(hurt.errors[0]).toMatch(/ECONNRESET|EPIPE/));
    const other = await dialLink();
    await eventually(() => expect(other.errors[0]).toMatch(/ECONNRESET|ECONNREFUSED/));
    await link.heal();
    const third = await dialLink();
    third.say('again');
    await eventually(() => expect(third.heard()).toContain('again'));
  });

  test('a black hole swallows what both sides say and closes nothing, and heals', where, async () => {
    const { link, hurt, safe, settle, dialLink } = await (await setup(kind)).conversation();
    await link.blackhole();
    hurt.say('lost');
    const other = await dialLink();
    other.say('lost too');
    await settle();
    expect(safe.heard()).not.toContain('lost');
    expect(hurt.heard()).toBe('hi ');
    expect([...hurt.errors, ...other.errors]).toEqual([]);
    await link.heal();
    const third = await dialLink();
    third.say('again');
    await eventually(() => expect(third.heard()).toContain('again'));
  });

  test('who is mute is not heard, and hears', where, async () => {
    const { link, hurt, safe, settle } = await (await setup(kind)).conversation();
    await link.mute();
    hurt.say('lost');
    // First of all: what it hears it cannot confirm, so after some ten packets it is sent no new ones.
    safe.say('you?');
    await eventually(() => expect(hurt.heard()).toContain('you?'));
    await settle();
    expect(safe.heard()).not.toContain('lost');
  });

  test('who is deaf is heard, and does not hear', where, async () => {
    const { link, hurt, safe, settle } = await (await setup(kind)).conversation();
    await link.deafen();
    hurt.say('me ');
    await eventually(() => expect(safe.heard()).toContain('me'));
    await settle();
    expect(hurt.heard()).toBe('hi ');
  });

  test('a slow way takes its time, and is as fast as before when it has healed', where, async () => {
    const { link, hurt, safe } = await (await setup(kind)).conversation();
    const delayMs = 100;
    await link.slow(delayMs);
    const begun = performance.now();
    // More than one packet.
    hurt.say('x'.repeat(6_000));
    await eventually(() => expect(safe.heard().length).toBeGreaterThan(6_000), { intervalMs: 1 });
    // Timers may fire a millisecond early.
    expect(performance.now() - begun).toBeGreaterThan(delayMs - 5);
    await link.heal();
    hurt.say('done');
    await eventually(() => expect(safe.heard()).toContain('done'));
  });

  test('a member of a mesh that is cut off is lost to all others, who keep each other', where, async () => {
    const { network, chatAt } = await setup(kind);
    const doors = [await chatAt('n1'), await chatAt('n2'), await chatAt('n3')];
    const peers = await network.mesh(doors);
    expect(peers.map(({ link }) => link.name)).toEqual(['n1~peers', 'n2~peers', 'n3~peers']);
    const answers = () =>
      Promise.all(
        doors.map(({ home }, member) =>
          Promise.all((peers[member]?.dials ?? []).map(async (to) => (await speak(home, to)).trim())),
        ),
      );
    const all = ['heard', 'heard'];
    expect(await answers()).toEqual([all, all, all]);
    await peers[0]?.link.blackhole();
    expect(await answers()).toEqual([
      ['silence', 'silence'],
      ['silence', 'heard'],
      ['silence', 'heard'],
    ]);
    await peers[0]?.link.heal();
    expect(await answers()).toEqual([all, all, all]);
  });
});

describe('in network namespaces', () => {
  test('a connection that lives through a black hole goes on where it was', namespaces, async () => {
    const { link, hurt, safe, settle } = await (await setup('namespaces')).conversation();
    await link.blackhole();
    hurt.say('late');
    await settle();
    expect(safe.heard()).not.toContain('late');
    await link.heal();
    await eventually(() => expect(safe.heard()).toContain('late'));
    await eventually(() => expect(hurt.heard()).toContain('late'));
    expect(hurt.errors).toEqual([]);
  });

  test('a process lives there under its own pid and user, and gets its signals', namespaces, async () => {
    const { network, startAt } = await setup('namespaces');
    const home = await network.home('part');
    const nobody = { uid: 65_534, gid: 65_534 };
    const script = `console.log(process.getuid(), process.getgid()); setInterval(() => {}, 1000)`;
    const server = await startAt(home, ['-e', script], nobody);
    await eventually(async () => expect(await server.output()).toBe('65534 65534'));
    expect(await readlink(`/proc/${server.pid}/ns/net`)).not.toBe(await readlink('/proc/self/ns/net'));
    expect(await readFile(`/proc/${server.pid}/comm`, 'utf8')).toMatch(/node|MainThread/);
    const state = async () =>
      /^State:\s+(\w)/m.exec(await readFile(`/proc/${server.pid}/status`, 'utf8'))?.[1];
    await server.kill('SIGSTOP');
    await eventually(async () => expect(await state()).toBe('T'));
    await server.kill('SIGKILL');
    expect(await server.exited).toEqual({ code: null, signal: 'SIGKILL' });
  });

  test(
    'what a run left whose process is gone is swept, and what another one has is not',
    namespaces,
    async () => {
      const gone = Number(await run('sh', ['-c', 'echo $$']));
      const dead = `tlchaos-${gone}-0000-part`;
      const alive = `tlchaos-${process.ppid}-0000-part`;
      for (const name of [dead, alive]) await run('ip', ['netns', 'add', name]);
      onTestFinished(async () => void (await run('ip', ['netns', 'del', alive])));
      const { network } = await setup('namespaces');
      const home = await network.home('part');
      const there = await run('ip', ['netns', 'list']);
      expect(there).not.toContain(dead);
      expect(there).toContain(alive);
      expect(there).toContain(home.network?.namespace);
    },
  );

  test('nothing is left after the end, by a stop or without one', namespaces, async () => {
    // The kernel takes the interfaces of the tests before away in its own time.
    await eventually(async () => expect(await leftBehind(process.pid)).toEqual([]));
    const { network } = await setup('namespaces');
    await network.home('part');
    expect(await leftBehind(process.pid)).not.toEqual([]);
    await network.close();
    await eventually(async () => expect(await leftBehind(process.pid)).toEqual([]));

    const module = new URL('./namespaces.ts', import.meta.url).href;
    const script = `
      const { openNamespaces } = await import(${JSON.stringify(module)});
      const home = await (await openNamespaces()).home('part');
      console.log(process.pid, home.network.namespace);
      process.exit();`;
    const args = ['--import', 'tsx', '--input-type=module', '-e', script];
    const [pid, namespace] = (await run(process.execPath, args)).trim().split(' ');
    expect(namespace).toContain(`tlchaos-${pid}-`);
    await eventually(async () => expect(await leftBehind(Number(pid))).toEqual([]));
  });
});

/** Namespaces and interfaces of a process. */
async function leftBehind(pid: number): Promise<string[]> {
  const lines = `${await run('ip', ['netns', 'list'])}\n${await run('ip', ['-br', 'link'])}`.split('\n');
  return lines.filter((line) => line.startsWith(`tlchaos-${pid}-`) || line.startsWith(`tlc${pid}`));
}
