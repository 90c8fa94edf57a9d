-- Why: how many tasks are in which status, kept by addition, so that nobody ever counts rows.
-- Locks: creates a table only.

create table queues (
  tenant text collate "C" not null,
  type text collate "C" not null,
  priority smallint not null,
  status text collate "C" not null,
  count bigint not null,
  primary key (tenant, type, priority, status)
-- Few rows, written with every batch: room for their versions on the same page.
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
