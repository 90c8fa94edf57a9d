import type { Status } from '../domain/events.ts';
import type {
  CancelAnswer,
  CancellationAnswer,
  CancellationDryRun,
  CancellationWish,
  DryRunAnswer,
  EventAnswer,
  JobAnswer,
  KeyAnswer,
  LetterAnswer,
  LetterGroupAnswer,
  LetterGroupWish,
  LetterListWish,
  NewKey,
  Paged,
  PauseAnswer,
  ProjectionsAnswer,
  QueueAnswer,
  ReplayAnswer,
  ReplayWish,
  RescheduleAnswer,
  ScheduleAnswer,
  ScheduleWish,
  SlotsAnswer,
  StreamsAnswer,
  Submission,
  SubmitAnswer,
  TaskAnswer,
  TaskFilter,
  TenantAnswer,
  TypeAnswer,
  WhyAnswer,
  WorkerAnswer,
} from './answers.ts';
import { type ApiOptions, createRequests, type RefusalBody } from './request.ts';

/** The HTTP API as functions; how each fails is told in request.ts. */
export type Api = ReturnType<typeof createApi>;

type Call = ReturnType<typeof createRequests>['call'];
type OfTenant = { readonly tenant?: string | undefined };

export function createApi(options: ApiOptions) {
  const { base, call, follow } = createRequests(options);
  return {
    url: base,
    follow,
    ...taskCalls(call),
    ...taskCommandCalls(call),
    ...queueCalls(call),
    ...deadLetterCalls(call),
    ...bulkCalls(call),
    ...scheduleCalls(call),
    ...settingsCalls(call),
    ...keyCalls(call),
    ...projectionCalls(call),
  };
}

const taskCalls = (call: Call) => ({
  /** `wait`: a sequence that the answer must reflect. */
  task: (
    id: string,
    query: OfTenant & { wait?: number | undefined; at?: string | number | undefined } = {},
  ) => call<TaskAnswer>('GET', paths.task(id), { query }),
  tasks: (filter: TaskFilter) =>
    call<Paged<'tasks', TaskAnswer['task']>>('GET', '/v1/tasks', { query: { ...filter } }),
  events: (id: string, query: OfTenant & { cursor?: string | undefined; limit?: number } = {}) =>
    call<Paged<'events', EventAnswer>>('GET', paths.task(id, '/events'), { query }),
  why: (id: string, query: OfTenant = {}) => call<WhyAnswer>('GET', paths.task(id, '/why'), { query }),
});

const taskCommandCalls = (call: Call) => ({
  submit: (submission: Submission) => call<SubmitAnswer>('POST', '/v1/tasks', { body: submission }),
  submitBatch: (tasks: readonly Submission[]) =>
    call<{ readonly results: readonly BatchResult[] }>('POST', '/v1/tasks/batch', { body: { tasks } }),
  cancel: (id: string, { tenant, reason }: OfTenant & { reason?: string | undefined } = {}) =>
    call<CancelAnswer>('POST', paths.task(id, '/cancel'), {
      query: { tenant },
      ...(reason === undefined ? {} : { body: { reason } }),
    }),
  reschedule: (
    id: string,
    change: { priority?: number | undefined; runAt?: string | number | null | undefined },
    { tenant }: OfTenant = {},
  ) => call<RescheduleAnswer>('PATCH', paths.task(id), { query: { tenant }, body: change }),
});

const queueCalls = (call: Call) => ({
  queues: (filter: OfTenant & { type?: string | undefined; at?: string | number | undefined } = {}) =>
    call<{ readonly position: number; readonly queues: readonly QueueAnswer[] }>('GET', '/v1/queues', {
      query: filter,
    }),
  workers: (query: { type?: string | undefined } = {}) =>
    call<{ readonly workers: readonly WorkerAnswer[] }>('GET', '/v1/workers', { query }),
  pause: (
    of: 'tenant' | 'type',
    name: string,
    body: { readonly reason: string; readonly until?: string | number },
    tenant?: string,
  ) => call<PauseAnswer>('POST', `${paths.paused(of, name)}/pause`, { query: { tenant }, body }),
  resume: (of: 'tenant' | 'type', name: string, tenant?: string) =>
    call<{ readonly resumed: boolean }>('POST', `${paths.paused(of, name)}/resume`, { query: { tenant } }),
  pauses: () => call<{ readonly pauses: readonly PauseAnswer[] }>('GET', '/v1/pauses'),
});

const deadLetterCalls = (call: Call) => ({
  deadLetters: (wish: LetterListWish) =>
    call<Paged<'deadLetters', LetterAnswer>>('GET', '/v1/dead-letters', { query: { ...wish } }),
  deadLetterGroups: (wish: LetterGroupWish) =>
    call<Paged<'groups', LetterGroupAnswer>>('GET', '/v1/dead-letters/groups', { query: { ...wish } }),
  deadLetter: (id: string, tenant: string | undefined) =>
    call<{ readonly position: number; readonly deadLetter: LetterAnswer }>('GET', paths.deadLetter(id), {
      query: { tenant },
    }),
  discard: (id: string, { tenant, reason }: { tenant: string | undefined; reason: string }) =>
    call<{ readonly id: string; readonly status: Status; readonly seq: number }>(
      'POST',
      `${paths.deadLetter(id)}/discard`,
      { query: { tenant }, body: { reason } },
    ),
});

/** What is done to many tasks at once. */
const bulkCalls = (call: Call) => ({
  startReplay: (wish: ReplayWish) => call<ReplayAnswer | DryRunAnswer>('POST', '/v1/replays', { body: wish }),
  replays: (tenant: string | undefined) =>
    call<{ readonly replays: readonly ReplayAnswer[] }>('GET', '/v1/replays', { query: { tenant } }),
  replay: (id: string) => call<ReplayAnswer>('GET', paths.replay(id)),
  controlReplay: (id: string, wish: 'pause' | 'resume' | 'abort') =>
    call<ReplayAnswer>('POST', `${paths.replay(id)}/${wish}`),
  startCancellation: (wish: CancellationWish) =>
    call<CancellationAnswer | CancellationDryRun>('POST', '/v1/cancellations', { body: wish }),
  cancellations: (tenant: string | undefined) =>
    call<{ readonly cancellations: readonly CancellationAnswer[] }>('GET', '/v1/cancellations', {
      query: { tenant },
    }),
  cancellation: (id: string) => call<CancellationAnswer>('GET', paths.cancellation(id)),
  controlCancellation: (id: string, wish: 'pause' | 'resume' | 'abort') =>
    call<CancellationAnswer>('POST', `${paths.cancellation(id)}/${wish}`),
});

const scheduleCalls = (call: Call) => ({
  schedules: (tenant?: string) =>
    call<{ readonly schedules: readonly ScheduleAnswer[] }>('GET', '/v1/schedules', { query: { tenant } }),
  schedule: (name: string, tenant?: string) =>
    call<ScheduleAnswer>('GET', paths.schedule(name), { query: { tenant } }),
  putSchedule: (name: string, wish: ScheduleWish, tenant?: string) =>
    call<ScheduleAnswer>('PUT', paths.schedule(name), { query: { tenant }, body: wish }),
  deleteSchedule: (name: string, tenant?: string) =>
    call<undefined>('DELETE', paths.schedule(name), { query: { tenant } }),
  pauseSchedule: (name: string, reason: string | undefined, tenant?: string) =>
    call<ScheduleAnswer>('POST', paths.schedule(name, '/pause'), { query: { tenant }, body: { reason } }),
  resumeSchedule: (name: string, tenant?: string) =>
    call<ScheduleAnswer>('POST', paths.schedule(name, '/resume'), { query: { tenant } }),
  runSchedule: (name: string, tenant?: string) =>
    call<SubmitAnswer>('POST', paths.schedule(name, '/run'), { query: { tenant } }),
  nextSlots: (name: string, query: OfTenant & { count?: number | undefined }) =>
    call<SlotsAnswer>('GET', paths.schedule(name, '/next'), { query }),
});

/** Of types and tenants. */
const settingsCalls = (call: Call) => ({
  types: () => call<{ readonly types: readonly TypeAnswer[] }>('GET', '/v1/types'),
  type: (name: string) => call<TypeAnswer>('GET', paths.type(name)),
  patchType: (name: string, patch: object) => call<TypeAnswer>('PATCH', paths.type(name), { body: patch }),
  tenants: () => call<{ readonly tenants: readonly TenantAnswer[] }>('GET', '/v1/tenants'),
  tenant: (name: string) => call<TenantAnswer>('GET', paths.tenant(name)),
  createTenant: (name: string, settings: { displayName?: string | undefined } = {}) =>
    call<TenantAnswer>('PUT', paths.tenant(name), { body: settings }),
  patchTenant: (name: string, patch: object) =>
    call<TenantAnswer>('PATCH', paths.tenant(name), { body: patch }),
});

const keyCalls = (call: Call) => ({
  keys: (tenant?: string) =>
    call<{ readonly keys: readonly KeyAnswer[] }>('GET', '/v1/keys', { query: { tenant } }),
  createKey: (key: OfTenant & { scopes: readonly string[]; name: string }) =>
    call<NewKey>('POST', '/v1/keys', { body: key }),
  revokeKey: (id: string) => call<undefined>('DELETE', `/v1/keys/${encodeURIComponent(id)}`),
});

const projectionCalls = (call: Call) => ({
  projections: () => call<ProjectionsAnswer>('GET', '/v1/projections'),
  acceptHistory: () => call<StreamsAnswer>('POST', '/v1/projections/history/accept'),
  rebuildProjection: (name: string, body: { acceptLoss: boolean }) =>
    call<JobAnswer>('POST', `${paths.projection(name)}/rebuild`, { body }),
  verifyProjection: (name: string) => call<JobAnswer>('POST', `${paths.projection(name)}/verify`),
  buildProjections: (body: { schema: string; until: string | number }) =>
    call<JobAnswer>('POST', '/v1/projections/build', { body }),
  projectionJob: (id: string) => call<JobAnswer>('GET', paths.projectionJob(id)),
  moveJob: (id: string, move: 'stop' | 'resume' | 'discard') =>
    call<JobAnswer>('POST', `${paths.projectionJob(id)}/${move}`),
});

const paths = {
  task: (id: string, rest = '') => `/v1/tasks/${encodeURIComponent(id)}${rest}`,
  deadLetter: (id: string) => `/v1/dead-letters/${encodeURIComponent(id)}`,
  replay: (id: string) => `/v1/replays/${encodeURIComponent(id)}`,
  cancellation: (id: string) => `/v1/cancellations/${encodeURIComponent(id)}`,
  schedule: (name: string, rest = '') => `/v1/schedules/${encodeURIComponent(name)}${rest}`,
  type: (name: string) => `/v1/types/${encodeURIComponent(name)}`,
  tenant: (name: string) => `/v1/tenants/${encodeURIComponent(name)}`,
  paused: (of: 'tenant' | 'type', name: string) =>
    `/v1/${of === 'tenant' ? 'tenants' : 'queues'}/${encodeURIComponent(name)}`,
  projection: (name: string) => `/v1/projections/${encodeURIComponent(name)}`,
  projectionJob: (id: string) => `/v1/projections/jobs/${encodeURIComponent(id)}`,
};

export type BatchResult =
  | ({ readonly index: number; readonly ok: true } & SubmitAnswer)
  | { readonly index: number; readonly ok: false; readonly error: RefusalBody['error'] };
