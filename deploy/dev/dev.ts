import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createLogger } from '../../src/observe/log.ts';
import { loadConfig } from '../../src/platform/config.ts';
import { migrate } from '../../src/platform/migrate.ts';
import { type ChildSpec, startChildren } from './children.ts';
import { banner, whenHealthy } from './greeting.ts';
import { ensureKeys } from './keys.ts';
import { openPortBook } from './ports.ts';
import { processesOf } from './processes.ts';
import { startServers } from './servers.ts';
import { lockFolder, runSession } from './session.ts';
import { watchSources } from './watch.ts';

// Starts everything on this machine: servers, migrations, a demo tenant, keys, the program, demo workers.

const { values: options } = parseArgs({
  options: {
    /** The demo that runs: see src/demo; `none` for none. */
    demo: { type: 'string' },
    /** Restart the program when sources change. */
    watch: { type: 'boolean', default: false },
  },
});

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const cacheDir = join(ROOT, '.taskledger', 'cache');
/** TASKLEDGER_DATA_DIR lets several sessions run from one project. */
const dataDir = resolve(process.env['TASKLEDGER_DATA_DIR'] || join(ROOT, '.taskledger'));
const print = (line: string): void => console.log(line);

process.exitCode = await runSession(async (session) => {
  await session.start(() => lockFolder(join(dataDir, 'session.json')));
  const ports = await openPortBook({ file: join(dataDir, 'ports.json'), env: process.env, print });
  const { natsUrl, databaseUrl } = await startServers(session, {
    dataDir,
    cacheDir,
    ports,
    env: process.env,
    print,
  });
  const httpPort = await ports.choose({ what: 'the API', env: 'TASKLEDGER_HTTP_PORT', usual: 8080 });
  const env = {
    ...process.env,
    NATS_URL: natsUrl,
    DATABASE_URL: databaseUrl,
    TASKLEDGER_HTTP_PORT: String(httpPort),
  };

  const config = loadConfig(env);
  await migrate(databaseUrl, { logger: createLogger({ logLevel: 'warn' }) });
  const keys = await ensureKeys(config, dataDir);
  session.signal.throwIfAborted();

  const url = `http://127.0.0.1:${httpPort}`;
  const { program, demo, note } = await processesOf({ demo: options.demo, dataDir });
  const run = (specs: readonly ChildSpec[]) =>
    session.start(async () =>
      startChildren({
        cwd: ROOT,
        specs: specs.map((spec) => ({
          ...spec,
          env: { ...env, TASKLEDGER_URL: url, TASKLEDGER_KEY: keys.demo, ...spec.env },
        })),
        print,
        colour: process.stdout.isTTY,
        onGivenUp: options.watch ? (reason) => print(`${reason}. Waiting for a change.`) : session.fail,
      }),
    );
  const main = await run(program);
  await whenHealthy(url, session.signal);
  const workers = await run(demo);
  if (options.watch) {
    const restart = async (): Promise<void> => {
      print('Sources changed: restarting.');
      await workers.stop();
      await main.restart();
      await workers.restart();
    };
    await session.start(async () => watchSources(ROOT, ['src', 'projections', 'migrations'], restart));
  }
  print(banner({ url, keys, natsUrl, databaseUrl, dataDir, note }));
}, print);
