-- How the jobs of a snapshot stand, in the order of its entities. Index: snapshot_export primary key, live, outcome_job.
SELECT e.job_type, e.entity_name, e.from_node, e.to_node, e.job_id, coalesce(l.status, o.status) AS status,
       o.result -> 'row_count' AS row_count,
       o.error, o.finished_at
FROM penstock.snapshot_export e
LEFT JOIN penstock.live l USING (job_id)
LEFT JOIN LATERAL (SELECT * FROM penstock.outcome o WHERE o.job_id = e.job_id LIMIT 1) o ON true
WHERE e.snapshot_id = :snapshot_id
ORDER BY e.position
