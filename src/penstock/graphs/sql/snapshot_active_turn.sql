-- One snapshot of a user is counted and added at a time, so that of two that meet not both are the last one.
SELECT pg_advisory_xact_lock(hashtextextended('penstock.active.snapshot:' || :owner::text, 0))
