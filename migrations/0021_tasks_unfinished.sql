-- Why: which unfinished task began first, and which was silent longest, is asked every half minute (src/retention); with
-- a million tasks waiting, reading all of them took 2 s each time.
-- Cost, measured: with 1 000 000 waiting 0.1 ms for both answers; COMPLETED rows, nearly all, are in neither index.
-- Locks: `create index` keeps writers of tasks waiting while it is built; readers go on.

create index tasks_unfinished_first on tasks (abs(submitted_seq))
  where status in ('INGESTED', 'QUEUED', 'CLAIMED', 'PROCESSING', 'FAILED', 'RETRY_CLAIMED', 'REPLAYED');
create index tasks_unfinished_last on tasks (seq)
  where status in ('INGESTED', 'QUEUED', 'CLAIMED', 'PROCESSING', 'FAILED', 'RETRY_CLAIMED', 'REPLAYED');
