import { z } from 'zod';

/** The shapes of answers about the read models, for the OpenAPI document. */

const instant = z.iso.datetime();
const row = z.record(z.string(), z.unknown());

const TableReportSchema = z.object({
  table: z.string(),
  rows: z.int(),
  missing: z.int().describe('Rows that the log gives and the live table lacks'),
  surplus: z.int().describe('Rows that only the live table has'),
  changed: z.int(),
  fromSeq: z.int().nullable().describe('The difference began at this event or before it'),
  sample: z.array(
    z.object({ key: row, columns: z.array(z.string()), live: row.nullable(), rebuilt: row.nullable() }),
  ),
});

export const JobSchema = z.object({
  id: z.uuid(),
  kind: z.enum(['rebuild', 'verify', 'build']),
  projections: z.array(z.string()),
  schema: z.string(),
  untilSeq: z.int().nullable(),
  state: z.enum(['waiting', 'running', 'stopped', 'done', 'failed', 'discarded']),
  phase: z.enum(['reading', 'indexing', 'switching', 'comparing']).nullable(),
  position: z.int(),
  target: z.int(),
  eventsPerSecond: z.int(),
  report: z
    .object({
      position: z.int().describe('Sequence that the tables reflect'),
      seconds: z.number(),
      poisoned: z.int(),
      tables: z.array(TableReportSchema).optional(),
    })
    .nullable(),
  error: z.string().nullable(),
  requestedBy: z.string(),
  requestedAt: instant,
  startedAt: instant.nullable(),
  finishedAt: instant.nullable(),
});

const task = z
  .object({
    tenant: z.string(),
    taskId: z.string(),
    seq: z.int().describe('Its first event'),
    lastSeq: z.int().describe('Its last event'),
  })
  .nullable();

export const StreamsSchema = z.object({
  history: z
    .object({
      checkedTo: z.int().describe('Compared with TASKS up to this sequence of TASKS'),
      lag: z.int().describe('Events that HISTORY has not drawn yet'),
      stalled: z.boolean(),
      findings: z.array(
        z.object({
          what: z.enum(['missing', 'doubled', 'foreign', 'deleted']),
          fromSeq: z.int(),
          toSeq: z.int(),
          historySeq: z.int().describe('Where in HISTORY'),
          foundAt: instant,
        }),
      ),
      accepted: z.int().describe('Findings that an operator has accepted'),
      checkedAt: instant,
    })
    .nullable(),
  needed: z
    .object({
      position: z.int().describe('Every event after it is needed'),
      oldest: task.describe('The unfinished task that began first'),
      quietest: task.describe('The unfinished task that was silent longest'),
      at: instant,
    })
    .nullable(),
  dangers: z.array(
    z.object({
      stream: z.string(),
      limit: z.enum(['max_age', 'max_bytes']),
      seq: z.int().describe('The needed event that the limit is about to take'),
      why: z.string(),
    }),
  ),
});

export const ProjectionsSchema = z.object({
  log: z.object({ firstSeq: z.int(), lastSeq: z.int() }),
  keptFromSeq: z.int().describe('From here on the streams have every event: what a rebuild starts from'),
  projections: z.array(
    z.object({
      name: z.string(),
      position: z.int(),
      lag: z.int(),
      movedAt: instant,
      poisoned: z.int().describe('Events that it could not digest'),
    }),
  ),
  jobs: z.array(JobSchema),
  streams: StreamsSchema,
});
