-- What a job asked for and how it stands, for whoever wants it done again. Index: primary keys, outcome_job.
SELECT j.job_id, j.kind, j.queue, j.priority, j.payload, j.max_attempts, j.timeout_s, j.deadline_at, j.created_at,
       j.lock_key, j.trace, coalesce(l.status, o.status) AS status
FROM penstock.job j
LEFT JOIN penstock.live l USING (job_id)
LEFT JOIN LATERAL (SELECT status FROM penstock.outcome o WHERE o.job_id = j.job_id LIMIT 1) o ON true
WHERE j.job_id = :job_id
