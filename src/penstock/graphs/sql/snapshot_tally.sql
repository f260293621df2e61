-- How many exports each snapshot has, and how many are done. Index: snapshot_export primary key, outcome_job.
SELECT e.snapshot_id, count(*) AS jobs, count(*) FILTER (WHERE o.status = 10) AS done
FROM penstock.snapshot_export e
LEFT JOIN LATERAL (SELECT o.status FROM penstock.outcome o WHERE o.job_id = e.job_id LIMIT 1) o ON true
WHERE e.snapshot_id = ANY (:snapshot_ids::bigint[])
GROUP BY e.snapshot_id
