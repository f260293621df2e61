-- The run's end. Invariant: a terminal status never changes.
UPDATE penstock.run SET status = :status, result = coalesce(:result::jsonb, result), error = :error, finished_at = penstock.now(), updated_at = penstock.now()
WHERE run_id = :run_id AND status IN ('staging', 'ready', 'executing')
