-- The current session of a name is over: another one registers. Index: worker_session_current.
UPDATE penstock.worker_session SET ended_at = penstock.now(), superseded_by = :session
WHERE worker = :worker AND ended_at IS NULL
