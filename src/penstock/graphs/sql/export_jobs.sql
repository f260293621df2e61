-- name: export_add
-- Which job exports which entity. Invariant: one job an entity.
INSERT INTO penstock.snapshot_export (snapshot_id, position, job_type, entity_name, from_node, to_node, job_id)
SELECT :snapshot_id, t.position, t.job_type, t.entity_name, t.from_node, t.to_node, t.job_id
FROM unnest(:positions::int[], :job_types::text[], :entity_names::text[], :from_nodes::text[], :to_nodes::text[], :job_ids::bigint[])
  AS t (position, job_type, entity_name, from_node, to_node, job_id)

-- name: export_attempts
-- The attempts whose files may still become part of a result: those that run, those whose query writes elsewhere, and
-- those that are done and whose snapshot has no manifest yet. Read once a day, by the sweeper.
SELECT l.attempt_id::text AS attempt
FROM penstock.live l WHERE l.queue = :queue AND l.attempt_id IS NOT NULL
UNION
SELECT l.state ->> 'attempt' FROM penstock.live l WHERE l.queue = :queue AND l.state ->> 'attempt' IS NOT NULL
UNION
SELECT coalesce(o.result ->> 'attempt', o.attempt_id::text)
FROM penstock.snapshot s
JOIN penstock.snapshot_export e USING (snapshot_id)
JOIN penstock.outcome o ON o.job_id = e.job_id
WHERE s.status NOT IN ('ready', 'cancelled') AND o.status = 10 AND o.attempt_id IS NOT NULL

-- name: export_ends
-- How the jobs of a snapshot stand, in the order of its entities. Index: snapshot_export primary key, live, outcome_job.
SELECT e.job_type, e.entity_name, e.from_node, e.to_node, e.job_id, coalesce(l.status, o.status) AS status,
       o.result -> 'row_count' AS row_count,
       o.error, o.finished_at
FROM penstock.snapshot_export e
LEFT JOIN penstock.live l USING (job_id)
LEFT JOIN LATERAL (SELECT * FROM penstock.outcome o WHERE o.job_id = e.job_id LIMIT 1) o ON true
WHERE e.snapshot_id = :snapshot_id
ORDER BY e.position

-- name: export_ids
SELECT job_id FROM penstock.snapshot_export WHERE snapshot_id = :snapshot_id ORDER BY position

-- name: export_list
-- Export jobs of all snapshots, newest first; the words are those of the face. Those that are not over are few, and are
-- looked for from their own table. Index: snapshot_export_job_id_key, live primary key, outcome_job.
WITH found AS (
  SELECT e.job_id, e.snapshot_id, e.job_type AS entity_type, e.entity_name, s.owner_username,
         coalesce(l.claimed_at, o.claimed_at) AS claimed_at, coalesce(l.worker, o.worker) AS claimed_by,
         coalesce(l.attempt_no, o.attempt_no, 0) AS attempts, o.error,
         CASE WHEN o.status = 10 THEN 'completed' WHEN o.status IS NOT NULL THEN 'failed'
              WHEN l.polls > 0 THEN 'submitted' WHEN l.status = 1 THEN 'claimed'
              WHEN l.job_id IS NOT NULL THEN 'pending' ELSE 'failed' END AS status
  FROM penstock.snapshot_export e
  JOIN penstock.snapshot s USING (snapshot_id)
  LEFT JOIN penstock.live l ON l.job_id = e.job_id
  LEFT JOIN LATERAL (SELECT * FROM penstock.outcome o WHERE o.job_id = e.job_id LIMIT 1) o ON true
  WHERE (:snapshot_id::bigint IS NULL OR e.snapshot_id = :snapshot_id)
    AND (:job_id::bigint IS NULL OR e.job_id = :job_id)
    AND (coalesce(:status, 'failed') IN ('completed', 'failed') OR e.job_id IN (SELECT job_id FROM penstock.live))
)
SELECT f.*, count(*) OVER () AS total FROM found f
WHERE :status::text IS NULL OR f.status = :status
ORDER BY f.job_id DESC LIMIT :limit OFFSET :offset

-- name: export_overdue
-- Exports that take longer than they may, from the submission of their query or from their claim: their time is up now,
-- and the reaper ends them as it ends every job past its deadline. Index: snapshot_open, live primary key.
-- Locks: the overdue rows, SKIP LOCKED.
WITH overdue AS MATERIALIZED (
  SELECT l.job_id
  FROM penstock.snapshot s
  JOIN penstock.snapshot_export e USING (snapshot_id)
  JOIN penstock.live l ON l.job_id = e.job_id
  WHERE s.status IN ('pending', 'creating')
    AND coalesce((l.state ->> 'submitted_at')::timestamptz, l.claimed_at) <= penstock.now() - make_interval(secs => :seconds)
    AND (l.deadline IS NULL OR l.deadline > penstock.now())
  LIMIT :limit
  FOR UPDATE OF l SKIP LOCKED
)
UPDATE penstock.live l
SET deadline = penstock.now(), overdue = l.status = 1, lease_until = CASE WHEN l.status = 1 THEN penstock.now() END
FROM overdue o WHERE l.job_id = o.job_id
RETURNING l.job_id

-- name: export_replace
-- New jobs in the place of those that failed.
UPDATE penstock.snapshot_export e SET job_id = t.new_id
FROM unnest(:old_ids::bigint[], :new_ids::bigint[]) AS t (old_id, new_id)
WHERE e.snapshot_id = :snapshot_id AND e.job_id = t.old_id

-- name: export_right
-- Whether the owner of a snapshot may have it exported from this source now.
SELECT s.owner_username,
       penstock.may_run_mapping(s.mapping_id, :data_source_id, s.owner_username,
                                penstock.has_admin_role(s.owner_username)) AS allowed
FROM penstock.snapshot s WHERE s.snapshot_id = :snapshot_id

-- name: export_silent
-- Parked exports that nobody has asked after for long: due now, so that a worker asks the engine by the query's id.
-- Index: snapshot_open, live primary key, attempt_job. Locks: the woken rows, SKIP LOCKED.
WITH silent AS MATERIALIZED (
  SELECT l.job_id
  FROM penstock.snapshot s
  JOIN penstock.snapshot_export e USING (snapshot_id)
  JOIN penstock.live l ON l.job_id = e.job_id
  WHERE s.status IN ('pending', 'creating') AND l.status = 2 AND l.wake_at > penstock.now()
    AND (SELECT max(a.ended_at) FROM penstock.attempt a WHERE a.job_id = l.job_id) <= penstock.now() - make_interval(secs => :seconds)
  LIMIT :limit
  FOR UPDATE OF l SKIP LOCKED
)
UPDATE penstock.live l SET wake_at = penstock.now() FROM silent s WHERE l.job_id = s.job_id
RETURNING l.job_id

-- name: export_states
-- How many export jobs there are in each state. Reads every row of snapshot_export once.
SELECT CASE WHEN o.status = 10 THEN 'completed' WHEN o.status IS NOT NULL THEN 'failed'
            WHEN l.polls > 0 THEN 'submitted' WHEN l.status = 1 THEN 'claimed'
            WHEN l.job_id IS NOT NULL THEN 'pending' ELSE 'failed' END AS status, count(*) AS count
FROM penstock.snapshot_export e
LEFT JOIN penstock.live l ON l.job_id = e.job_id
LEFT JOIN LATERAL (SELECT o.status FROM penstock.outcome o WHERE o.job_id = e.job_id LIMIT 1) o ON true
GROUP BY 1

-- name: export_submitted
-- Jobs whose query was submitted before they were made begin parked, and are due at once.
-- Invariant: only for jobs that this very transaction has added. Index: live primary key.
UPDATE penstock.live l SET status = 2, polls = 1, state = t.state, wake_at = penstock.now()
FROM unnest(:job_ids::bigint[], :states::jsonb[]) AS t (job_id, state)
WHERE l.job_id = t.job_id

-- name: export_view
-- Export jobs with everything the face shows of them. Index: primary keys of job and live, outcome_job.
-- A result's list of parts may be large, and nobody asks the face for it.
SELECT j.job_id, j.kind, j.payload, j.group_id, j.created_at, coalesce(l.status, o.status) AS status,
       coalesce(l.attempt_no, o.attempt_no) AS attempt_no, coalesce(l.polls, 0) AS polls,
       coalesce(l.worker, o.worker) AS worker, coalesce(l.claimed_at, o.claimed_at) AS claimed_at,
       l.attempt_id, j.lease_s, l.wake_at, l.state, l.progress, o.finished_at,
       CASE WHEN jsonb_typeof(o.result) = 'object' THEN o.result - '{parts,columns,arrow_schema}'::text[] END AS result, o.error
FROM penstock.job j
LEFT JOIN penstock.live l USING (job_id)
LEFT JOIN LATERAL (SELECT * FROM penstock.outcome o WHERE o.job_id = j.job_id LIMIT 1) o ON true
WHERE j.job_id = ANY (:job_ids::bigint[]) AND j.kind = ANY (:kinds::text[])

-- name: hold_groups
-- Locks groups after their live rows and before any snapshot, in the order of everybody. Index: job_group primary key.
SELECT group_id FROM penstock.job_group WHERE group_id = ANY (:group_ids::bigint[]) ORDER BY group_id FOR UPDATE

-- name: hold_live
-- Locks the live rows of these jobs, before a transaction that ends several of them.
-- Invariant: whoever waits for live rows takes them by job_id. Index: live primary key.
SELECT job_id, group_id FROM penstock.live WHERE job_id = ANY (:job_ids::bigint[]) ORDER BY job_id FOR UPDATE

-- name: job_end
-- How one job ended; nothing while it has not. Index: outcome_job.
SELECT status, result, error FROM penstock.outcome WHERE job_id = :job_id LIMIT 1

-- name: job_payloads
SELECT job_id, kind, payload, timeout_s, created_by, trace FROM penstock.job WHERE job_id = ANY (:job_ids::bigint[])
