-- How many export jobs there are in each state. Reads every row of snapshot_export once.
SELECT CASE WHEN o.status = 10 THEN 'completed' WHEN o.status IS NOT NULL THEN 'failed'
            WHEN l.polls > 0 THEN 'submitted' WHEN l.status = 1 THEN 'claimed'
            WHEN l.job_id IS NOT NULL THEN 'pending' ELSE 'failed' END AS status, count(*) AS count
FROM penstock.snapshot_export e
LEFT JOIN penstock.live l ON l.job_id = e.job_id
LEFT JOIN LATERAL (SELECT o.status FROM penstock.outcome o WHERE o.job_id = e.job_id LIMIT 1) o ON true
GROUP BY 1
