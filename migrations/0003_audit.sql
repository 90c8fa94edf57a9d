-- Why: every event of every task, with its time and its actor, for as long as the installation keeps them.
-- Locks: creates a table only. Daily partitions (audit_YYYYMMDD, by the log's clock, UTC) are made by the projector.

create table audit (
  seq bigint not null,
  stored_at timestamptz not null,
  at timestamptz not null,
  event_id uuid not null,
  task_id uuid not null,
  tenant text collate "C" not null,
  type text collate "C" not null,
  kind text collate "C" not null,
  from_status text collate "C",
  round integer not null,
  attempt integer not null,
  priority smallint not null,
  actor_kind text collate "C" not null,
  actor_id text collate "C" not null,
  trace text collate "C",
  -- What this kind of event alone knows; null for nothing. QUEUED and CARRIED leave out their copy of the payload.
  data json,
  -- An event can be recorded once: applying a batch again fails.
  primary key (seq, stored_at)
) partition by range (stored_at);

-- By the id alone: it is nearly unique, and each byte of a key is paid for with every event.
create index audit_of_task on audit (task_id, seq);
