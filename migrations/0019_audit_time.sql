-- Why: the state as of an instant asks which event was the last one by then. Block ranges only, so nearly free to keep.
-- Locks: SHARE on audit while it is built, which takes seconds for many millions of rows.

create index audit_stored_at on audit using brin (stored_at);
