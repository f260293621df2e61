UPDATE penstock.schedule
SET last_at = next_at, last_job = :job_id, next_at = :next_at, try_at = NULL, failures = 0
WHERE name = :name
