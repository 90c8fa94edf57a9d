-- Why: tasks that died, each with its error, grouped by what the errors have in common; kept until somebody deletes them.
-- Locks: creates tables only.

-- One row a task that has died, also when it was replayed or discarded since.
create table dead_letters (
  tenant text collate "C" not null,
  id uuid not null,
  type text collate "C" not null,
  -- open, replayed or discarded.
  state text collate "C" not null,
  reason text collate "C" not null,
  -- Of the error, or of the reason when no attempt has failed.
  fingerprint text collate "C" not null,
  -- The last failure of the round: { name, message, code?, stack? }.
  error json,
  worker text collate "C",
  worker_version text collate "C",
  priority smallint not null,
  -- Attempts over all rounds, and the round that died last.
  attempt integer not null,
  round integer not null,
  first_failed_at timestamptz,
  first_dead_at timestamptz not null,
  dead_at timestamptz not null,
  -- Sequence of the last DEAD_LETTER: the order of the lists.
  seq bigint not null,
  -- When, by whom and why it was replayed or discarded.
  settled_at timestamptz,
  settled_by text collate "C",
  note text,
  -- What a replay must know of the task when the log has forgotten it.
  facts json,
  primary key (tenant, id)
) with (fillfactor = 80);

create index dead_letters_newest on dead_letters (seq);
create index dead_letters_of_tenant on dead_letters (tenant, seq);
create index dead_letters_of_group on dead_letters (type, fingerprint, seq);

-- Why the last attempt failed, of tasks that have not ended since: a dead letter takes it from here.
create table dead_letter_failures (
  tenant text collate "C" not null,
  id uuid not null,
  error json not null,
  worker text collate "C" not null,
  worker_version text collate "C",
  round integer not null,
  first_failed_at timestamptz not null,
  primary key (tenant, id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

-- Counters kept by addition: how many dead letters have one error in common.
create table dead_letter_groups (
  tenant text collate "C" not null,
  type text collate "C" not null,
  fingerprint text collate "C" not null,
  -- Dead letters whose last death belongs here, by what became of them.
  open bigint not null,
  replayed bigint not null,
  discarded bigint not null,
  -- Deaths ever, each round of a task one.
  deaths bigint not null,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  last_seq bigint not null,
  error_name text not null,
  -- The message without what differs from one occurrence to the next.
  shape text not null,
  -- The occurrence that was seen last.
  sample_id uuid not null,
  sample_message text not null,
  primary key (tenant, type, fingerprint)
) with (fillfactor = 50);
