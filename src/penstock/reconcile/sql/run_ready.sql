-- Staging is over and the match is queued. Invariant: only from staging.
UPDATE penstock.run SET status = 'ready', inputs = :inputs, match_group = :match_group, match_job = :match_job, ready_at = penstock.now(), updated_at = penstock.now()
WHERE run_id = :run_id AND status = 'staging'
