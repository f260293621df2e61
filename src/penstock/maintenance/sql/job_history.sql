-- The jobs of one table, newest first. Index: maintenance_job_table, then the job's own.
SELECT m.job_id, m.created_at, m.policy, j.created_by, j.payload, o.status, o.finished_at, o.error, l.status AS live,
  count(*) OVER () AS total
FROM penstock.maintenance_job m
JOIN penstock.job j USING (job_id)
LEFT JOIN penstock.outcome o USING (job_id)
LEFT JOIN penstock.live l USING (job_id)
WHERE m.catalog = :catalog AND m.db = :db AND m.table_name = :table_name
ORDER BY m.job_id DESC LIMIT :limit OFFSET :offset
