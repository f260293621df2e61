-- Registrations under one name come one after the other; nobody else waits for this lock.
SELECT pg_advisory_xact_lock(hashtextextended('penstock.worker_session ' || :worker, 0))
