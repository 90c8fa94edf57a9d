-- Why: every read model remembers how far into the log it has come, and what it could not digest.
-- Locks: creates tables only.

-- One row a read model. `seq` moves in the transaction that applies the events up to it, by compare-and-set.
create table projection_checkpoint (
  name text primary key,
  seq bigint not null,
  -- Creation time of the stream that `seq` belongs to: a replaced log starts its sequences again.
  log_id text not null,
  at timestamptz not null default now()
);

-- Events that a read model could not digest. They are set aside here, and the read model goes on without them.
create table projection_poison (
  projection text not null,
  seq bigint not null,
  event text not null,
  error text not null,
  at timestamptz not null default now(),
  primary key (projection, seq)
);
