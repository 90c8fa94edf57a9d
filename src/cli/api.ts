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

export function createApi(options: ApiOptions) {
  const { base, call, follow } = createRequests(options);
  const schedule = (name: string, rest = ''): string => `/v1/schedules/${encodeURIComponent(name)}${rest}`;
  const task = (id: string, rest = ''): string => `/v1/tasks/${encodeURIComponent(id)}${rest}`;
  const deadLetter = (id: string): string => `/v1/dead-letters/${encodeURIComponent(id)}`;
  const replay = (id: string): string => `/v1/replays/${encodeURIComponent(id)}`;
  const cancellation = (id: string): string => `/v1/cancellations/${encodeURIComponent(id)}`;
  const paused = (of: 'tenant' | 'type', name: string): string =>
    `/v1/${of === 'tenant' ? 'tenants' : 'queues'}/${encodeURIComponent(name)}`;

  return {
    url: base,
    submit: (submission: Submission) => call<SubmitAnswer>('POST', '/v1/tasks', { body: submission }),
    submitBatch: (tasks: readonly Submission[]) =>
      call<{ readonly results: readonly BatchResult[] }>('POST', '/v1/tasks/batch', { body: { tasks } }),
    /** `wait`: a sequence that the answer must reflect. */
    task: (
      id: string,
      query: {
        tenant?: string | undefined;
        wait?: number | undefined;
        at?: string | number | undefined;
      } = {},
    ) => call<TaskAnswer>('GET', task(id), { query }),
    tasks: (filter: TaskFilter) =>
      call<Paged<'tasks', TaskAnswer['task']>>('GET', '/v1/tasks', { query: { ...filter } }),
    events: (
      id: string,
      query: { tenant?: string | undefined; cursor?: string | undefined; limit?: number } = {},
    ) => call<Paged<'events', EventAnswer>>('GET', task(id, '/events'), { query }),
    follow,
    cancel: (
      id: string,
      { tenant, reason }: { tenant?: string | undefined; reason?: string | undefined } = {},
    ) =>
      call<CancelAnswer>('POST', task(id, '/cancel'), {
        query: { tenant },
        ...(reason === undefined ? {} : { body: { reason } }),
      }),
    why: (id: string, query: { tenant?: string | undefined } = {}) =>
      call<WhyAnswer>('GET', task(id, '/why'), { query }),
    workers: (query: { type?: string | undefined } = {}) =>
      call<{ readonly workers: readonly WorkerAnswer[] }>('GET', '/v1/workers', { query }),
    reschedule: (
      id: string,
      change: { priority?: number | undefined; runAt?: string | number | null | undefined },
      { tenant }: { tenant?: string | undefined } = {},
    ) => call<RescheduleAnswer>('PATCH', task(id), { query: { tenant }, body: change }),
    queues: (
      filter: {
        tenant?: string | undefined;
        type?: string | undefined;
        at?: string | number | undefined;
      } = {},
    ) =>
      call<{ readonly position: number; readonly queues: readonly QueueAnswer[] }>('GET', '/v1/queues', {
        query: filter,
      }),
    deadLetters: (wish: LetterListWish) =>
      call<Paged<'deadLetters', LetterAnswer>>('GET', '/v1/dead-letters', { query: { ...wish } }),
    deadLetterGroups: (wish: LetterGroupWish) =>
      call<Paged<'groups', LetterGroupAnswer>>('GET', '/v1/dead-letters/groups', { query: { ...wish } }),
    deadLetter: (id: string, tenant: string | undefined) =>
      call<{ readonly position: number; readonly deadLetter: LetterAnswer }>('GET', deadLetter(id), {
        query: { tenant },
      }),
    discard: (id: string, { tenant, reason }: { tenant: string | undefined; reason: string }) =>
      call<{ readonly id: string; readonly status: Status; readonly seq: number }>(
        'POST',
        `${deadLetter(id)}/discard`,
        { query: { tenant }, body: { reason } },
      ),
    startReplay: (wish: ReplayWish) =>
      call<ReplayAnswer | DryRunAnswer>('POST', '/v1/replays', { body: wish }),
    replays: (tenant: string | undefined) =>
      call<{ readonly replays: readonly ReplayAnswer[] }>('GET', '/v1/replays', { query: { tenant } }),
    replay: (id: string) => call<ReplayAnswer>('GET', replay(id)),
    controlReplay: (id: string, wish: 'pause' | 'resume' | 'abort') =>
      call<ReplayAnswer>('POST', `${replay(id)}/${wish}`),
    types: () => call<{ readonly types: readonly TypeAnswer[] }>('GET', '/v1/types'),
    type: (name: string) => call<TypeAnswer>('GET', `/v1/types/${encodeURIComponent(name)}`),
    patchType: (name: string, patch: object) =>
      call<TypeAnswer>('PATCH', `/v1/types/${encodeURIComponent(name)}`, { body: patch }),
    pause: (
      of: 'tenant' | 'type',
      name: string,
      body: { readonly reason: string; readonly until?: string | number },
      tenant?: string,
    ) => call<PauseAnswer>('POST', `${paused(of, name)}/pause`, { query: { tenant }, body }),
    resume: (of: 'tenant' | 'type', name: string, tenant?: string) =>
      call<{ readonly resumed: boolean }>('POST', `${paused(of, name)}/resume`, { query: { tenant } }),
    pauses: () => call<{ readonly pauses: readonly PauseAnswer[] }>('GET', '/v1/pauses'),
    startCancellation: (wish: CancellationWish) =>
      call<CancellationAnswer | CancellationDryRun>('POST', '/v1/cancellations', { body: wish }),
    cancellations: (tenant: string | undefined) =>
      call<{ readonly cancellations: readonly CancellationAnswer[] }>('GET', '/v1/cancellations', {
        query: { tenant },
      }),
    cancellation: (id: string) => call<CancellationAnswer>('GET', cancellation(id)),
    controlCancellation: (id: string, wish: 'pause' | 'resume' | 'abort') =>
      call<CancellationAnswer>('POST', `${cancellation(id)}/${wish}`),
    tenant: (name: string) => call<TenantAnswer>('GET', `/v1/tenants/${encodeURIComponent(name)}`),
    patchTenant: (name: string, patch: object) =>
      call<TenantAnswer>('PATCH', `/v1/tenants/${encodeURIComponent(name)}`, { body: patch }),
    keys: (tenant?: string) =>
      call<{ readonly keys: readonly KeyAnswer[] }>('GET', '/v1/keys', { query: { tenant } }),
    createKey: (key: { tenant?: string | undefined; scopes: readonly string[]; name: string }) =>
      call<NewKey>('POST', '/v1/keys', { body: key }),
    revokeKey: (id: string) => call<undefined>('DELETE', `/v1/keys/${encodeURIComponent(id)}`),
    projections: () => call<ProjectionsAnswer>('GET', '/v1/projections'),
    acceptHistory: () => call<StreamsAnswer>('POST', '/v1/projections/history/accept'),
    rebuildProjection: (name: string, body: { acceptLoss: boolean }) =>
      call<JobAnswer>('POST', `/v1/projections/${encodeURIComponent(name)}/rebuild`, { body }),
    verifyProjection: (name: string) =>
      call<JobAnswer>('POST', `/v1/projections/${encodeURIComponent(name)}/verify`),
    buildProjections: (body: { schema: string; until: string | number }) =>
      call<JobAnswer>('POST', '/v1/projections/build', { body }),
    projectionJob: (id: string) => call<JobAnswer>('GET', `/v1/projections/jobs/${encodeURIComponent(id)}`),
    moveJob: (id: string, move: 'stop' | 'resume' | 'discard') =>
      call<JobAnswer>('POST', `/v1/projections/jobs/${encodeURIComponent(id)}/${move}`),
    tenants: () => call<{ readonly tenants: readonly TenantAnswer[] }>('GET', '/v1/tenants'),
    schedules: (tenant?: string) =>
      call<{ readonly schedules: readonly ScheduleAnswer[] }>('GET', '/v1/schedules', { query: { tenant } }),
    schedule: (name: string, tenant?: string) =>
      call<ScheduleAnswer>('GET', schedule(name), { query: { tenant } }),
    putSchedule: (name: string, wish: ScheduleWish, tenant?: string) =>
      call<ScheduleAnswer>('PUT', schedule(name), { query: { tenant }, body: wish }),
    deleteSchedule: (name: string, tenant?: string) =>
      call<undefined>('DELETE', schedule(name), { query: { tenant } }),
    pauseSchedule: (name: string, reason: string | undefined, tenant?: string) =>
      call<ScheduleAnswer>('POST', schedule(name, '/pause'), { query: { tenant }, body: { reason } }),
    resumeSchedule: (name: string, tenant?: string) =>
      call<ScheduleAnswer>('POST', schedule(name, '/resume'), { query: { tenant } }),
    runSchedule: (name: string, tenant?: string) =>
      call<SubmitAnswer>('POST', schedule(name, '/run'), { query: { tenant } }),
    nextSlots: (name: string, query: { count?: number | undefined; tenant?: string | undefined }) =>
      call<SlotsAnswer>('GET', schedule(name, '/next'), { query }),
    createTenant: (name: string, settings: { displayName?: string | undefined } = {}) =>
      call<TenantAnswer>('PUT', `/v1/tenants/${encodeURIComponent(name)}`, { body: settings }),
  };
}

export type BatchResult =
  | ({ readonly index: number; readonly ok: true } & SubmitAnswer)
  | { readonly index: number; readonly ok: false; readonly error: RefusalBody['error'] };
