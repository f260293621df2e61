-- How the last jobs of a table that a policy asked for ended, newest first. Index: maintenance_job_table.
SELECT m.job_id, m.created_at, m.snapshot_id, o.status, o.finished_at, penstock.now() - m.created_at AS age,
  penstock.now() - o.finished_at AS ended_ago
FROM penstock.maintenance_job m LEFT JOIN penstock.outcome o USING (job_id)
WHERE m.catalog = :catalog AND m.db = :db AND m.table_name = :table_name AND m.policy IS NOT NULL
ORDER BY m.job_id DESC LIMIT 5
