-- How the last jobs of a table that a policy asked for ended, newest first; as many as make the longest pause. `idle` ones
-- succeeded and changed nothing, a budget that was too small for any of it included. Index: maintenance_job_table, outcome_job, maintenance_action's primary key.
SELECT m.job_id, m.created_at, m.snapshot_id, o.status, o.finished_at, penstock.now() - m.created_at AS age,
  penstock.now() - o.finished_at AS ended_ago,
  o.status = 10 AND coalesce(a.nothing, false) AS idle
FROM penstock.maintenance_job m
LEFT JOIN penstock.outcome o USING (job_id)
LEFT JOIN LATERAL (
  SELECT bool_and(status NOT IN ('completed', 'partial')
    OR status = 'partial' AND result->>'commits' = '0' AND result->>'deleted_files' = '0') AS nothing
  FROM penstock.maintenance_action WHERE job_id = m.job_id
) a ON true
WHERE m.catalog = :catalog AND m.db = :db AND m.table_name = :table_name AND m.policy IS NOT NULL
ORDER BY m.job_id DESC LIMIT 8
