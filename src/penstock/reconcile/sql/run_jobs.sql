-- The jobs of a run's groups, how they stand, and how they ended. Index: job_by_group, live primary key, outcome_job.
SELECT j.job_id, j.kind, j.payload, coalesce(l.status, o.status) AS status, o.attempt_id, l.progress, o.result, o.error, l.worker, l.claimed_at
FROM penstock.job j
LEFT JOIN penstock.live l USING (job_id)
LEFT JOIN LATERAL (SELECT * FROM penstock.outcome o WHERE o.job_id = j.job_id LIMIT 1) o ON true
WHERE j.group_id = ANY (:group_ids::bigint[]) ORDER BY j.job_id
