import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CLIENTS, type Door, type Home, type Link, type Network } from '../network/network.ts';
import type { Brokers } from './brokers.ts';
import type { Database } from './database.ts';
import { partOf } from './part.ts';
import type { Death, Victim } from './victim.ts';

/** How many of each part. */
export interface StandSize {
  readonly apis: number;
  readonly dispatchers: number;
  readonly projectors: number;
  readonly workers: number;
}

export interface PartsOptions {
  /** Holds a folder for each part. */
  readonly dir: string;
  readonly network: Network;
  readonly brokers: Brokers;
  readonly database: Database;
  /** Of every part. */
  readonly env: Env;
  readonly onDeath: (death: Death) => void;
}

type Env = Readonly<Record<string, string>>;
type Command = readonly [program: string, ...args: string[]];

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const WORKER = fileURLToPath(new URL('../load/worker.ts', import.meta.url));
const API_PORT = 8_080;
const WORKER_CONCURRENCY = 8;

/** The processes of the product, each in a home of its own, and the ways between them and the servers. */
export class Parts {
  readonly #options: PartsOptions;
  readonly #victims = new Map<string, Victim>();
  readonly #links: Map<string, Link>;
  readonly #apis: string[] = [];
  /** By worker: says which release it is to be when it starts. */
  readonly #releaseFiles = new Map<string, string>();

  constructor(options: PartsOptions) {
    this.#options = options;
    this.#links = new Map(options.brokers.routes.map((route) => [route.name, route]));
  }

  get victims(): ReadonlyMap<string, Victim> {
    return this.#victims;
  }

  /** Those of the brokers as well. */
  get links(): ReadonlyMap<string, Link> {
    return this.#links;
  }

  /** As clients reach them. */
  get apis(): readonly string[] {
    return this.#apis;
  }

  async start({ projectors, dispatchers, apis, workers }: StandSize): Promise<void> {
    for (let n = 1; n <= projectors; n++) await this.#addProjector(`projector-${n}`);
    for (let n = 1; n <= dispatchers; n++)
      await this.#add(await this.#homeOf(`dispatcher-${n}`), [MAIN, 'dispatcher']);
    for (let n = 1; n <= apis; n++) await this.#addApi(`api-${n}`);
    for (let n = 1; n <= workers; n++) await this.#addWorker(`worker-${n}`);
  }

  /** Side by side: each may take its grace time. */
  async stop(): Promise<void> {
    await Promise.all([...this.#victims.values()].map((part) => part.stop()));
  }

  /** Gives every worker the release that it does not have yet, one after the other. */
  async rollOut(release: number, signal: AbortSignal): Promise<void> {
    for (const [name, file] of this.#releaseFiles) {
      if (signal.aborted) return;
      if ((await readFile(file, 'utf8')) === String(release)) continue;
      await writeFile(file, String(release));
      await this.#victims.get(name)?.stop();
      await this.#victims.get(name)?.start();
    }
  }

  /** How the servers are reached `from` there. */
  async natsUrl(from: string): Promise<string> {
    const addresses = await this.#way(from, 'nats', this.#options.brokers.doors);
    return addresses.map((address) => `nats://${address}`).join(',');
  }

  async #postgresUrl(from: string): Promise<string> {
    const { database } = this.#options;
    const [address = ''] = await this.#way(from, 'postgres', [database.door]);
    return database.urlAt(address);
  }

  async #way(from: string, service: string, to: readonly Door[]): Promise<readonly string[]> {
    const link = await this.#options.network.open({ name: `${from}~${service}`, from, to });
    this.#links.set(link.name, link);
    return link.dials;
  }

  #homeOf(part: string): Promise<Home> {
    return this.#options.network.home(part);
  }

  async #addProjector(name: string): Promise<void> {
    const home = await this.#homeOf(name);
    await this.#add(home, [MAIN, 'projector'], { DATABASE_URL: await this.#postgresUrl(name) });
  }

  async #addApi(name: string): Promise<void> {
    const home = await this.#homeOf(name);
    const port = await home.port(API_PORT);
    await this.#add(home, [MAIN, 'api'], {
      DATABASE_URL: await this.#postgresUrl(name),
      TASKLEDGER_HTTP_HOST: home.bind,
      TASKLEDGER_HTTP_PORT: String(port),
    });
    const [address] = await this.#way(CLIENTS, name, [{ home, port }]);
    this.#apis.push(`http://${address}`);
  }

  async #addWorker(name: string): Promise<void> {
    const { dir } = this.#options;
    const file = join(dir, `${name}.release`);
    await writeFile(file, '1');
    this.#releaseFiles.set(name, file);
    const command: Command = [WORKER, name, String(WORKER_CONCURRENCY), file];
    await this.#add(await this.#homeOf(name), command, { TASKLEDGER_SPOOL_DIR: join(dir, 'spool') });
  }

  async #add(home: Home, [program, ...args]: Command, own: Env = {}): Promise<void> {
    const { dir, onDeath } = this.#options;
    const env = { ...this.#options.env, ...own, NATS_URL: await this.natsUrl(home.part) };
    const part = partOf({ home, program, args, dir, env, onDeath });
    this.#victims.set(home.part, part);
    await part.start();
  }
}
