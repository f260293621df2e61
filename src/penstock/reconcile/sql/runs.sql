-- name: run_active
-- The number of active runs of a user. Index: run_open.
SELECT count(*) FROM penstock.run WHERE status IN ('staging', 'ready', 'executing') AND owner_username = :owner

-- name: run_active_turn
-- Locks a user's run count: two concurrent requests cannot both take the last free place.
SELECT pg_advisory_xact_lock(hashtextextended('penstock.active.run:' || :owner::text, 0))

-- name: run_add
-- Inserts the run's row, before any of its jobs is queued.
INSERT INTO penstock.run (recipe_id, recipe_version, recipe, parameters, owner_username, status, inputs, callback_url, retry_of, started_by, deadline)
VALUES (:recipe_id, :recipe_version, :recipe, :parameters, :owner_username, :status, :inputs, :callback_url, :retry_of, :started_by, penstock.now() + :timeout::interval)
RETURNING run_id

-- name: run_count
SELECT count(*) FROM penstock.run r
WHERE (:recipe_id::text IS NULL OR r.recipe_id = :recipe_id) AND (:owner_username::text IS NULL OR r.owner_username = :owner_username)

-- name: run_end
-- Ends the run. Invariant: a terminal status never changes.
UPDATE penstock.run SET status = :status, result = coalesce(:result::jsonb, result), error = :error, finished_at = penstock.now(), updated_at = penstock.now()
WHERE run_id = :run_id AND status IN ('staging', 'ready', 'executing')

-- name: run_get
-- A run; its status is `executing` while its match job is running. Index: primary keys of run and live.
SELECT r.run_id, r.recipe_id, r.recipe_version, r.recipe, r.parameters, r.owner_username,
       CASE WHEN r.status = 'ready' AND l.attempt_id IS NOT NULL THEN 'executing' ELSE r.status END AS status,
       r.inputs, r.staging_group, r.match_group, r.match_job, r.retry_of, r.callback_url, r.result, r.error,
       r.created_at, r.updated_at, r.ready_at, r.finished_at, r.deadline
FROM penstock.run r LEFT JOIN penstock.live l ON l.job_id = r.match_job WHERE r.run_id = :run_id

-- name: run_jobs
-- The jobs of a run's groups with their status and outcome. Index: job_by_group, live primary key, outcome_job.
SELECT j.job_id, j.kind, j.payload, coalesce(l.status, o.status) AS status, o.attempt_id, l.progress, o.result, o.error, l.worker, l.claimed_at
FROM penstock.job j
LEFT JOIN penstock.live l USING (job_id)
LEFT JOIN LATERAL (SELECT * FROM penstock.outcome o WHERE o.job_id = j.job_id LIMIT 1) o ON true
WHERE j.group_id = ANY (:group_ids::bigint[]) ORDER BY j.job_id

-- name: run_list
SELECT r.run_id, r.recipe_id, r.recipe_version, r.recipe, r.parameters, r.owner_username,
       CASE WHEN r.status = 'ready' AND l.attempt_id IS NOT NULL THEN 'executing' ELSE r.status END AS status,
       r.inputs, r.staging_group, r.match_group, r.match_job, r.retry_of, r.callback_url, r.result, r.error,
       r.created_at, r.updated_at, r.ready_at, r.finished_at, r.deadline
FROM penstock.run r LEFT JOIN penstock.live l ON l.job_id = r.match_job
WHERE (:recipe_id::text IS NULL OR r.recipe_id = :recipe_id) AND (:owner_username::text IS NULL OR r.owner_username = :owner_username)
ORDER BY r.run_id DESC LIMIT :limit OFFSET :offset

-- name: run_live
-- Live jobs of a run, locked in job_id order before its groups and its row. Index: live_group.
SELECT job_id FROM penstock.live WHERE group_id = ANY (:group_ids::bigint[]) ORDER BY job_id FOR UPDATE

-- name: run_live_one
-- Whether a job is still live: cancelling one member of a group also cancels the waiting ones.
SELECT job_id FROM penstock.live WHERE job_id = :job_id

-- name: run_lock
-- The run's stored status, locked. Lock order: live rows, groups, run.
SELECT run_id, status, inputs, recipe, recipe_id, recipe_version, parameters, owner_username, staging_group, match_group, match_job, result,
       extract(epoch FROM deadline - penstock.now())::float8 AS seconds_left, callback_url
FROM penstock.run WHERE run_id = :run_id FOR UPDATE

-- name: run_previous
-- The latest run of a recipe before this one that has evidence: one that passed a threshold failed, but its items are
-- open. A run of somebody else counts only if it read the same sources, for its open items go into this one's evidence.
-- Index: run_recipe.
SELECT p.run_id, p.result
FROM penstock.run p JOIN penstock.run r ON r.run_id = :run_id
WHERE p.recipe_id = :recipe_id AND p.run_id < :run_id AND p.status IN ('completed', 'failed') AND p.result IS NOT NULL
  AND (p.owner_username = r.owner_username
       OR (p.inputs #> '{left,data_source_id}' = r.inputs #> '{left,data_source_id}'
           AND p.inputs #> '{right,data_source_id}' = r.inputs #> '{right,data_source_id}'))
ORDER BY p.run_id DESC LIMIT 1

-- name: run_ready
-- Staging is over and the match is queued. Invariant: only from staging.
UPDATE penstock.run SET status = 'ready', inputs = :inputs, match_group = :match_group, match_job = :match_job, ready_at = penstock.now(), updated_at = penstock.now()
WHERE run_id = :run_id AND status = 'staging'

-- name: run_staging
UPDATE penstock.run SET staging_group = :group_id, updated_at = penstock.now() WHERE run_id = :run_id

-- name: run_started
-- The run that a scheduled job started, if it did. Index: run_started_by_key.
SELECT run_id FROM penstock.run WHERE started_by = :started_by
