-- Why: a task that a schedule made says which one, and for which slot.
-- Locks: columns without a default; no row is written again.

alter table tasks
  add column schedule text collate "C",
  add column slot_at timestamptz;
