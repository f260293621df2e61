-- name: snapshot_active
-- How many snapshots of a user are under way. Index: snapshot_open.
SELECT count(*) FROM penstock.snapshot WHERE status IN ('pending', 'creating') AND owner_username = :owner

-- name: snapshot_active_turn
-- One snapshot of a user is counted and added at a time, so that of two that meet not both are the last one.
SELECT pg_advisory_xact_lock(hashtextextended('penstock.active.snapshot:' || :owner::text, 0))

-- name: snapshot_add
-- A new snapshot; its prefix holds its own number, so it is set next, in the same transaction.
INSERT INTO penstock.snapshot (mapping_id, mapping_version, data_source_id, owner_username, name, description, ttl, inactivity_timeout, expires_at)
VALUES (:mapping_id, :mapping_version, :data_source_id, :owner_username, :name, :description, :ttl, :inactivity_timeout,
        penstock.now() + :ttl::interval)
RETURNING snapshot_id

-- name: snapshot_count
SELECT count(*)
FROM penstock.snapshot s
WHERE (:mapping_id::bigint IS NULL OR s.mapping_id = :mapping_id)
  AND (:owner::text IS NULL OR s.owner_username = :owner)
  AND (:status::text IS NULL OR s.status = :status)
  AND (:search::text IS NULL OR s.name ILIKE :search OR s.description ILIKE :search)
  AND (:created_after::timestamptz IS NULL OR s.created_at >= :created_after)
  AND (:created_before::timestamptz IS NULL OR s.created_at <= :created_before)

-- name: snapshot_dependants
-- The instances that need a snapshot: how many, and the first of them. Index: instance_snapshot.
SELECT instance_id, name, status, count(*) OVER () AS total
FROM penstock.instance
WHERE snapshot_id = :snapshot_id
  AND status IN ('waiting_for_snapshot', 'starting', 'running', 'suspended', 'resuming')
ORDER BY instance_id LIMIT :limit

-- name: snapshot_drop
-- Favourites and the list of its jobs go with it; instances that failed or are stopping forget it.
DELETE FROM penstock.snapshot WHERE snapshot_id = :snapshot_id

-- name: snapshot_get
SELECT * FROM penstock.snapshot WHERE snapshot_id = :snapshot_id

-- name: snapshot_hold
-- A snapshot that is about to go: nobody begins anything with it until the transaction ends.
SELECT * FROM penstock.snapshot WHERE snapshot_id = :snapshot_id FOR UPDATE

-- name: snapshot_lifecycle
-- A new life counts from now. When it was last changed is left alone: the clean-up counts a failure's age from there.
UPDATE penstock.snapshot
SET ttl = CASE WHEN :set_ttl THEN :ttl::interval ELSE ttl END,
    expires_at = CASE WHEN :set_ttl THEN penstock.now() + :ttl::interval ELSE expires_at END,
    inactivity_timeout = CASE WHEN :set_inactivity THEN :inactivity_timeout::interval ELSE inactivity_timeout END
WHERE snapshot_id = :snapshot_id
RETURNING *

-- name: snapshot_lock
-- A snapshot, held until the transaction ends. Everybody takes live rows first, groups second and snapshots last.
SELECT * FROM penstock.snapshot WHERE snapshot_id = :snapshot_id FOR NO KEY UPDATE

-- name: snapshot_move
-- The next step of a snapshot that the caller has locked and whose step it has checked. What is NULL stays as it is,
-- but for an old failure, which ends with the step.
UPDATE penstock.snapshot
SET status = :status,
    updated_at = penstock.now(),
    ready_at = CASE WHEN :status = 'ready' THEN penstock.now() ELSE ready_at END,
    size_bytes = coalesce(:size_bytes, size_bytes),
    node_counts = coalesce(:node_counts::jsonb, node_counts),
    edge_counts = coalesce(:edge_counts::jsonb, edge_counts),
    error_message = :error_message,
    failed_step = :failed_step,
    publish_job = :publish_job
WHERE snapshot_id = :snapshot_id
RETURNING *

-- name: snapshot_page
-- Snapshots, newest first. Index: snapshot_created, snapshot_owner, snapshot_mapping.
SELECT s.*
FROM penstock.snapshot s
WHERE (:mapping_id::bigint IS NULL OR s.mapping_id = :mapping_id)
  AND (:owner::text IS NULL OR s.owner_username = :owner)
  AND (:status::text IS NULL OR s.status = :status)
  AND (:search::text IS NULL OR s.name ILIKE :search OR s.description ILIKE :search)
  AND (:created_after::timestamptz IS NULL OR s.created_at >= :created_after)
  AND (:created_before::timestamptz IS NULL OR s.created_at <= :created_before)
ORDER BY s.created_at DESC, s.snapshot_id DESC
OFFSET :offset LIMIT :limit

-- name: snapshot_place
UPDATE penstock.snapshot SET prefix = :prefix WHERE snapshot_id = :snapshot_id

-- name: snapshot_publish
UPDATE penstock.snapshot SET publish_job = :publish_job, updated_at = penstock.now() WHERE snapshot_id = :snapshot_id

-- name: snapshot_rename
-- What people call it. What is NULL stays, but a description can be taken away. When an open or failed one was last
-- changed is left alone: its age counts from there, for those who finalise and those who clean up.
UPDATE penstock.snapshot
SET name = coalesce(:name, name),
    description = CASE WHEN :set_description THEN :description ELSE description END,
    updated_at = CASE WHEN status IN ('pending', 'creating', 'failed') THEN updated_at ELSE penstock.now() END
WHERE snapshot_id = :snapshot_id
RETURNING *

-- name: snapshot_reusable
-- The newest snapshot of a mapping version and a source that is ready, young enough and not about to end.
-- Held against deletion until the transaction ends. Index: snapshot_mapping.
SELECT * FROM penstock.snapshot
WHERE mapping_id = :mapping_id AND mapping_version = :version AND data_source_id IS NOT DISTINCT FROM :data_source_id::bigint
  AND status = 'ready' AND prefix IS NOT NULL
  AND created_at > penstock.now() - :max_age::interval
  AND (expires_at IS NULL OR expires_at > penstock.now())
ORDER BY created_at DESC, snapshot_id DESC
LIMIT 1
FOR KEY SHARE

-- name: snapshot_right
-- Whether somebody may read the rows of a snapshot: whoever might make it now. One that names no source is its owner's.
SELECT a.is_admin
       OR CASE WHEN s.data_source_id IS NULL THEN s.owner_username = :username
               ELSE penstock.may_run_mapping(s.mapping_id, s.data_source_id, :username, a.is_admin) END
FROM penstock.snapshot s,
     LATERAL (SELECT coalesce(:is_admin::boolean, penstock.has_admin_role(:username::text)) AS is_admin) a
WHERE s.snapshot_id = :snapshot_id

-- name: snapshot_spent
-- Snapshots that failed long ago and still have files. Reads all snapshots, once a day.
SELECT snapshot_id FROM penstock.snapshot
WHERE status = 'failed' AND prefix IS NOT NULL AND updated_at <= penstock.now() - :kept::interval
ORDER BY snapshot_id LIMIT :limit

-- name: snapshot_states
SELECT status, count(*) AS count FROM penstock.snapshot GROUP BY status

-- name: snapshot_stuck
-- Snapshots that are being made although nothing of theirs is under way: their gate fired and nobody finalised them.
-- Those of the last seconds are left to the transaction that ends them. Index: snapshot_open, live primary key.
SELECT s.snapshot_id
FROM penstock.snapshot s
WHERE s.status = 'creating'
  AND s.updated_at <= penstock.now() - make_interval(secs => :grace)
  AND EXISTS (SELECT FROM penstock.snapshot_export e WHERE e.snapshot_id = s.snapshot_id)
  AND NOT EXISTS (SELECT FROM penstock.live l WHERE l.job_id = s.publish_job)
  AND NOT EXISTS (
    SELECT FROM penstock.snapshot_export e JOIN penstock.live l ON l.job_id = e.job_id WHERE e.snapshot_id = s.snapshot_id)
ORDER BY s.snapshot_id
LIMIT :limit

-- name: snapshot_tally
-- How many exports each snapshot has, and how many are done. Index: snapshot_export primary key, outcome_job.
SELECT e.snapshot_id, count(*) AS jobs, count(*) FILTER (WHERE o.status = 10) AS done
FROM penstock.snapshot_export e
LEFT JOIN LATERAL (SELECT o.status FROM penstock.outcome o WHERE o.job_id = e.job_id LIMIT 1) o ON true
WHERE e.snapshot_id = ANY (:snapshot_ids::bigint[])
GROUP BY e.snapshot_id

-- name: snapshot_used
UPDATE penstock.snapshot SET last_used_at = penstock.now() WHERE snapshot_id = :snapshot_id
