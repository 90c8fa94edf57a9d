-- Why: rebuilding and verifying read models is work of minutes: asked for over HTTP, done by a projector, watched by both.
-- Locks: creates a table only.

create table projection_job (
  id uuid primary key,
  -- rebuild | verify | build
  kind text not null,
  projections text[] not null,
  -- Where the tables are made; a rebuild moves them from there.
  schema_name text not null,
  -- Last event to apply (build); null to follow the live tables.
  until_seq bigint,
  -- waiting | running | stopped | done | failed | discarded
  state text not null default 'waiting',
  stop_requested boolean not null default false,
  -- reading | indexing | switching | comparing
  phase text,
  position bigint not null default 0,
  target bigint not null default 0,
  events_per_second integer not null default 0,
  -- The projector that works on it; `heard_at` tells whether it still does.
  runner text,
  heard_at timestamptz,
  report json,
  error text,
  requested_by text not null,
  requested_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz
);

-- One job at a time on a schema.
create unique index projection_job_active on projection_job (schema_name)
  where state in ('waiting', 'running', 'stopped');
create index projection_job_newest on projection_job (requested_at);
