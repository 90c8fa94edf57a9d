-- Why: the current state of every task, for look-ups by id and for lists, newest first.
-- Locks: creates a table only.

create table tasks (
  tenant text collate "C" not null,
  id uuid not null,
  type text collate "C" not null,
  status text collate "C" not null,
  priority smallint not null,
  round integer not null,
  attempt integer not null,
  cancel_requested boolean not null,
  -- Sequence of the first event known of the task: the order of the lists.
  submitted_seq bigint not null,
  -- Sequence of the last event that is reflected here.
  seq bigint not null,
  submitted_at timestamptz not null,
  updated_at timestamptz not null,
  run_at timestamptz,
  due_at timestamptz,
  deadline_at timestamptz,
  claimed_at timestamptz,
  started_at timestamptz,
  finished_at timestamptz,
  worker text collate "C",
  dead_letter_reason text collate "C",
  idempotency_key text collate "C",
  -- json, not jsonb: nothing looks inside, and json keeps what jsonb refuses (\u0000) or changes (numbers, key order).
  payload json,
  result json,
  error json,
  rejections json,
  -- The id first: an operator may look a task up without naming its tenant.
  primary key (id, tenant)
-- A task is written about twice, soon after each other: room on the page for the second version.
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

-- Lists of all tenants (operators).
create index tasks_newest on tasks (submitted_seq);
create index tasks_of_tenant on tasks (tenant, submitted_seq);
create index tasks_of_type on tasks (tenant, type, submitted_seq);
-- COMPLETED is where nearly all tasks end, so a list of them needs no index of its own, and leaving it out keeps this one small.
create index tasks_of_status on tasks (status, tenant, submitted_seq) where status <> 'COMPLETED';
-- Block ranges only, so nearly free: narrows lists by time.
create index tasks_submitted_at on tasks using brin (submitted_at);
