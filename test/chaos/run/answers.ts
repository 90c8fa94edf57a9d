import type { Bulk, Verified } from '../checker/evidence.ts';
import type { AnswerBody, Call } from '../load/http.ts';
import { cameTrue } from './came-true.ts';

/** What the product says of itself at the end of a run. */
export interface Answers {
  readonly bulks: readonly Bulk[];
  readonly verified: readonly Verified[];
  readonly complaints: readonly string[];
}

const WITHIN_MS = 120_000;
const PATIENCE = { withinMs: WITHIN_MS, pollMs: 500 };
const KINDS = [
  { kind: 'replay', path: '/v1/replays', list: 'replays', moves: ['replayed'] },
  {
    kind: 'cancellation',
    path: '/v1/cancellations',
    list: 'cancellations',
    moves: ['cancelled', 'requested'],
  },
] as const;

/** Bulk operations once they have ended. They may move tasks until then. */
export async function endedBulks(
  call: Call,
  operatorKey: string,
): Promise<Pick<Answers, 'bulks' | 'complaints'>> {
  const bulks = new Map<string, Bulk>();
  await cameTrue(async () => {
    for (const { kind, path, list, moves } of KINDS) {
      const { ok, body } = await call({ key: operatorKey, method: 'GET', path });
      if (!ok) return false;
      for (const { id = '', state, progress } of body[list] as readonly AnswerBody[]) {
        const counts = progress as Readonly<Record<string, number | undefined>>;
        const moved = moves.reduce((sum, name) => sum + (counts[name] ?? 0), 0);
        bulks.set(id, { id, kind, state: String(state), moved });
      }
    }
    return [...bulks.values()].every(({ state }) => state !== 'running');
  }, PATIENCE);
  const running = [...bulks.values()].filter(({ state }) => state === 'running');
  return {
    bulks: [...bulks.values()],
    complaints: running.map(({ id, kind }) => `the ${kind} ${id} has not ended in ${WITHIN_MS} ms`),
  };
}

/** Has every read model compared with what the log gives, after whatever still works on them. */
export async function verifyAll(
  call: Call,
  operatorKey: string,
): Promise<Pick<Answers, 'verified' | 'complaints'>> {
  let id: string | undefined;
  await cameTrue(async () => {
    const asked = await call({ key: operatorKey, path: '/v1/projections/all/verify', body: {} });
    if (asked.status === 202) id = asked.body.id;
    return id !== undefined;
  }, PATIENCE);
  if (id === undefined) return { verified: [], complaints: [`no verification began in ${WITHIN_MS} ms`] };
  let job: Job | undefined;
  const isOver = await cameTrue(async () => {
    const { body } = await call({ key: operatorKey, method: 'GET', path: `/v1/projections/jobs/${id}` });
    job = body as unknown as Job;
    return ['done', 'failed', 'discarded'].includes(job.state);
  }, PATIENCE);
  const { state, error, report } = job ?? { state: 'silent', error: null, report: null };
  if (!isOver || report === null)
    return { verified: [], complaints: [`the verification is ${state}: ${error ?? 'too slow'}`] };
  const verified = (report.tables ?? []).map(
    ({ table, missing, surplus, changed, fromSeq, sample }): Verified => ({
      projection: table,
      differences:
        missing + surplus + changed === 0
          ? []
          : [
              `${table}: ${missing} rows missing, ${surplus} surplus, ${changed} changed, from event ${fromSeq} on`,
              ...sample.slice(0, 1).map((row) => JSON.stringify(row)),
            ],
    }),
  );
  return {
    verified,
    complaints: report.poisoned > 0 ? [`${report.poisoned} events could not be digested`] : [],
  };
}

interface Job {
  readonly state: string;
  readonly error: string | null;
  readonly report: { readonly poisoned: number; readonly tables?: readonly Table[] } | null;
}
interface Table {
  readonly table: string;
  readonly missing: number;
  readonly surplus: number;
  readonly changed: number;
  readonly fromSeq: number | null;
  readonly sample: readonly unknown[];
}
