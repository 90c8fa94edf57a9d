// Taskledger for the harness of the yardstick systems: `node bench.mjs --peer <this file> --workload W2`.
// Needs `npm run build` first: producer and worker use dist/, as an application would use the package.
import { mkdirSync, readFileSync } from 'node:fs';

const root = new URL('../../', import.meta.url);
const { version } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
/** The harness submits without a bound. */
const NO_LIMIT = 100_000_000;
const TENANTS = ['main', 'a', 'b'];

export const meta = {
  peer: 'taskledger',
  version,
  startServer,
  config: {
    concurrency: 100, // per worker process
    bulkChunk: 500,
    bulkInflight: 4,
    layout: 'api+dispatcher,projector', // processes of the product; all read models are written
  },
  overrides: { W6: { concurrency: 50 } },
  // Fairness is between the tenants of a type, so one shared queue is the case that matters.
  w8: ['shared', 'lanes'],
  history: {
    answer: 'yes',
    why: 'every transition is an event with time, attempt and actor (the worker incarnation, the dispatcher, the key); GET /v1/tasks/<id>/events returns them in order from the audit table, and the log itself can be replayed',
  },
};

/** Servers, dispatcher, API and projectors, all empty again after each `reset`. Node runs TypeScript through tsx here, in the runner alone. */
async function startServer() {
  // The harness keeps its journal where its own servers have their data.
  mkdirSync(process.env.BENCH_TMP ?? '/tmp/bench', { recursive: true });
  const { tsImport } = await import('tsx/esm/api');
  const { prepareStands, parseLayout } = await tsImport('./stand.ts', import.meta.url);
  const stands = await prepareStands((line) => console.error(`taskledger: ${line}`));
  let stand;
  return {
    version: `nats-server ${stands.natsVersion}, postgres ${stands.postgresVersion}`,
    get conn() {
      const { natsUrl, apiUrl, apiKey } = stand;
      return { natsUrl, apiUrl, apiKey };
    },
    pids: () => Object.values(stand?.parts ?? {}).flat(),
    async reset({ config }) {
      await stand?.stop();
      stand = await stands.open({
        layout: parseLayout(config.layout),
        tenants: TENANTS,
        durability: { replicas: 1 },
        settings: config.settings ?? {},
      });
    },
    // After a bulk load: the projectors have caught up, and Postgres has done what it does within a minute.
    settle: () => stand.settle(),
    async stop() {
      await stand?.stop();
      await stands.close();
    },
  };
}

/** Lanes and tenants of the harness as names: a lane is a task type. */
const nameOf = (text) => text.toLowerCase();

export async function create({ role, conn }) {
  const { createSubmitter, createWorker } = await import(new URL('dist/src/index.js', root));
  return role === 'producer' ? producer(createSubmitter, conn) : worker(createWorker, conn);
}

function producer(createSubmitter, { natsUrl, apiUrl, apiKey }) {
  const submitters = new Map();
  /** Ids of the first tasks, for `history`. */
  const ids = new Map();
  const KEPT_IDS = 1_000;
  const submitterOf = (tenant = 'main') => {
    const name = nameOf(tenant);
    const known = submitters.get(name);
    if (known !== undefined) return known;
    const opening = createSubmitter({ nats: natsUrl, tenant: name, config: { maxBacklog: NO_LIMIT } });
    submitters.set(name, opening);
    return opening;
  };
  const accepted = (outcome, payload) => {
    if (!outcome.ok) throw outcome.error;
    if (payload.i < KEPT_IDS) ids.set(payload.i, outcome.id);
  };
  return {
    async start() {
      await submitterOf();
    },
    async submit(payload, { lane, tenant }) {
      const submitter = await submitterOf(tenant);
      accepted(await submitter.submit({ type: nameOf(lane), payload }), payload);
    },
    async submitBulk(payloads, { lane, tenant }) {
      const submitter = await submitterOf(tenant);
      const type = nameOf(lane);
      const outcomes = await submitter.submitBatch(payloads.map((payload) => ({ type, payload })));
      for (const [index, outcome] of outcomes.entries()) accepted(outcome, payloads[index]);
    },
    async history({ i }) {
      const response = await fetch(new URL(`/v1/tasks/${ids.get(i)}/events`, apiUrl), {
        headers: { authorization: `Bearer ${apiKey}` },
      });
      return response.json();
    },
    async stop() {
      for (const opening of submitters.values()) await (await opening).close();
    },
  };
}

function worker(createWorker, { natsUrl }) {
  const workers = [];
  return {
    async start() {},
    async work(handler, concurrency, { lanes, onComplete }) {
      const perLane = Math.max(1, Math.floor(concurrency / lanes.length));
      const forEachLane = (value) => Object.fromEntries(lanes.map((lane) => [nameOf(lane), value]));
      const working = createWorker({
        nats: natsUrl,
        types: forEachLane(({ payload }) => handler(payload)),
        concurrency: lanes.length === 1 ? concurrency : forEachLane(perLane),
        hooks: { completed: ({ payload }) => onComplete(payload) },
      });
      workers.push(working);
      await working.start();
    },
    async stop() {
      for (const working of workers) await working.stop();
    },
  };
}
