import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { requireOperator } from '../auth.ts';
import { checkedBody } from '../checked-body.ts';
import type { HttpParts } from '../parts.ts';
import { POINT_DESCRIPTION, pointOf, pointParameter } from '../point-in-log.ts';
import { addRoute } from '../route.ts';
import { JobSchema, ProjectionsSchema, StreamsSchema } from '../schemas-projections.ts';

const NameParams = z.strictObject({ name: z.string().regex(/^[a-z_]{1,40}$/) });
const JobParams = z.strictObject({ id: z.uuid() });
const RebuildBody = z.strictObject({ acceptLoss: z.boolean().default(false) });
const SchemaName = z
  .string()
  .regex(/^(?!pg_)[a-z][a-z0-9_]{0,39}$/, 'must be 1 to 40 of a-z, 0-9 and "_", starting with a letter');
const BuildBody = z.strictObject({
  schema: SchemaName.describe('Schema of Postgres that does not exist yet'),
  until: pointParameter.describe(POINT_DESCRIPTION),
});
const BODY_LIMITS = { maxBytes: 4_096, maxDepth: 3 };
const EVERY_JOB = ['operator_only', 'read_model_unavailable'] as const;
const STARTS_JOB = [...EVERY_JOB, 'log_unavailable', 'projection_job_active'] as const;

const JOB_MOVES = {
  stop: 'Stop a job; what it has built stays, so that it can be resumed',
  resume: 'Resume a stopped job where it was',
  discard: 'Give a stopped job up and drop what it has built',
} as const;
type JobMove = keyof typeof JOB_MOVES;

/** The read models and the work on them: the business of operators. */
export function projectionRoutes(app: FastifyInstance, parts: HttpParts): void {
  listProjections(app, parts);
  rebuildProjection(app, parts);
  verifyProjection(app, parts);
  buildSchema(app, parts);
  readJob(app, parts);
  acceptFindings(app, parts);
  for (const move of ['stop', 'resume', 'discard'] as const) moveJob(app, parts, move);
}

function listProjections(app: FastifyInstance, { projections: desk, streams }: HttpParts): void {
  addRoute(app, {
    method: 'GET',
    url: '/v1/projections',
    scope: 'admin',
    tag: 'projections',
    summary:
      'How far the read models have come, the last jobs on them, and what the streams they are built from lack',
    responses: { 200: ProjectionsSchema },
    errors: [...EVERY_JOB, 'log_unavailable'],
    async handler({ identity }) {
      requireOperator(identity);
      return { ...(await desk.status()), streams: streams.report() };
    },
  });
}

function rebuildProjection(app: FastifyInstance, { projections: desk, logger }: HttpParts): void {
  addRoute(app, {
    method: 'POST',
    url: '/v1/projections/:name/rebuild',
    scope: 'admin',
    tag: 'projections',
    summary: 'Rebuild a read model (or all) beside the live one and put it in its place',
    description:
      'A projector works on it: watch the job. The switch is one transaction, and readers see either the old tables or the new ones.',
    params: NameParams,
    body: RebuildBody,
    responses: { 202: JobSchema },
    errors: [...STARTS_JOB, 'projection_unknown', 'history_incomplete'],
    async handler({ identity, params: { name }, body, reply }) {
      requireOperator(identity);
      const { acceptLoss } = checkedBody(RebuildBody, body, BODY_LIMITS);
      const job = await desk.rebuild(name, { acceptLoss, by: identity.id });
      logger.info({ by: identity.id, projection: name, job: job.id }, 'rebuild asked for');
      return reply.code(202).send(job);
    },
  });
}

function verifyProjection(app: FastifyInstance, { projections: desk }: HttpParts): void {
  addRoute(app, {
    method: 'POST',
    url: '/v1/projections/:name/verify',
    scope: 'admin',
    tag: 'projections',
    summary: 'Compare a read model (or all) with what the log gives, row by row',
    description: 'The job ends with a report: which rows differ, and from which event on.',
    params: NameParams,
    responses: { 202: JobSchema },
    errors: [...STARTS_JOB, 'projection_unknown'],
    async handler({ identity, params: { name }, reply }) {
      requireOperator(identity);
      return reply.code(202).send(await desk.verify(name, { by: identity.id }));
    },
  });
}

function buildSchema(app: FastifyInstance, { projections: desk, logger }: HttpParts): void {
  addRoute(app, {
    method: 'POST',
    url: '/v1/projections/build',
    scope: 'admin',
    tag: 'projections',
    summary: 'Build all read models as of a point in the log, in a schema of their own',
    body: BuildBody,
    responses: { 202: JobSchema },
    errors: [...STARTS_JOB, 'schema_in_use', 'run_at_invalid'],
    async handler({ identity, body, reply }) {
      requireOperator(identity);
      const { schema, until } = checkedBody(BuildBody, body, BODY_LIMITS);
      const job = await desk.build({ schema, until: pointOf('until', until), by: identity.id });
      logger.info({ by: identity.id, schema, until, job: job.id }, 'build asked for');
      return reply.code(202).send(job);
    },
  });
}

function readJob(app: FastifyInstance, { projections: desk }: HttpParts): void {
  addRoute(app, {
    method: 'GET',
    url: '/v1/projections/jobs/:id',
    scope: 'admin',
    tag: 'projections',
    summary: 'Read a job: how far it is, and what it found',
    params: JobParams,
    responses: { 200: JobSchema },
    errors: [...EVERY_JOB, 'projection_job_not_found'],
    async handler({ identity, params: { id } }) {
      requireOperator(identity);
      return desk.job(id);
    },
  });
}

function acceptFindings(app: FastifyInstance, { streams, logger }: HttpParts): void {
  addRoute(app, {
    method: 'POST',
    url: '/v1/projections/history/accept',
    scope: 'admin',
    tag: 'projections',
    summary: 'Take note of what HISTORY lacks or has twice, so that it is no longer told of',
    responses: { 200: StreamsSchema },
    errors: ['operator_only', 'log_unavailable'],
    async handler({ identity }) {
      requireOperator(identity);
      const accepted = await streams.acceptFindings();
      logger.warn({ by: identity.id, accepted: accepted.history?.accepted }, 'findings in HISTORY accepted');
      return accepted;
    },
  });
}

function moveJob(app: FastifyInstance, { projections: desk, logger }: HttpParts, move: JobMove): void {
  addRoute(app, {
    method: 'POST',
    url: `/v1/projections/jobs/:id/${move}`,
    scope: 'admin',
    tag: 'projections',
    summary: JOB_MOVES[move],
    params: JobParams,
    responses: { 200: JobSchema },
    errors: [...EVERY_JOB, 'projection_job_not_found', 'projection_job_ended'],
    async handler({ identity, params: { id } }) {
      requireOperator(identity);
      logger.info({ by: identity.id, job: id, move }, 'projection job moved');
      return desk[move](id);
    },
  });
}
