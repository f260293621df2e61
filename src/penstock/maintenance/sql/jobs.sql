-- name: job_add
-- Which table a job is about; written in the transaction that enqueues it.
INSERT INTO penstock.maintenance_job (job_id, catalog, db, table_name, run_id, policy, snapshot_id)
VALUES (:job_id, :catalog, :db, :table_name, :run_id, :policy, :snapshot_id)

-- name: job_history
-- The jobs of one table, newest first. Index: maintenance_job_table, then the job's own.
SELECT m.job_id, m.created_at, m.policy, j.created_by, j.payload, o.status, o.finished_at, o.error, l.status AS live,
  count(*) OVER () AS total
FROM penstock.maintenance_job m
JOIN penstock.job j USING (job_id)
LEFT JOIN penstock.outcome o USING (job_id)
LEFT JOIN penstock.live l USING (job_id)
WHERE m.catalog = :catalog AND m.db = :db AND m.table_name = :table_name
ORDER BY m.job_id DESC LIMIT :limit OFFSET :offset

-- name: job_last
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

-- name: run_add
-- A pass of the planner.
INSERT INTO penstock.maintenance_run (assessed, skipped, healthy, submitted)
VALUES (:assessed, :skipped::jsonb, :healthy, :submitted) RETURNING run_id

-- name: run_list
-- Passes, newest first, with how their jobs stand. Index: maintenance_job_run.
SELECT r.*, count(*) OVER () AS total,
  (SELECT count(*) FROM penstock.maintenance_job m JOIN penstock.outcome o USING (job_id) WHERE m.run_id = r.run_id AND o.status = 10) AS completed,
  (SELECT count(*) FROM penstock.maintenance_job m JOIN penstock.outcome o USING (job_id) WHERE m.run_id = r.run_id AND o.status > 10) AS failed
FROM penstock.maintenance_run r ORDER BY r.run_id DESC LIMIT :limit OFFSET :offset

-- name: run_submitted
-- How many jobs a pass asked for; known only after it.
UPDATE penstock.maintenance_run SET submitted = :submitted, skipped = :skipped::jsonb WHERE run_id = :run_id
