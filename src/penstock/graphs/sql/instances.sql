-- name: instance_active
UPDATE penstock.instance SET last_activity_at = penstock.now() WHERE instance_id = :instance_id AND status = 'running'

-- name: instance_add
-- A new instance. Invariant: the caller holds its snapshot, and has counted the others under the limits' lock.
INSERT INTO penstock.instance (
  snapshot_id, mapping_id, mapping_version, owner_username, wrapper_type, name, description, status, url_slug, place,
  launch, ttl, inactivity_timeout, expires_at, cpu_cores, memory_gb)
VALUES (
  :snapshot_id, :mapping_id, :mapping_version, :owner_username, :wrapper_type, :name, :description, :status, :url_slug,
  :place, :launch, :ttl, :inactivity_timeout, penstock.now() + :ttl::interval, :cpu_cores, :memory_gb)
RETURNING instance_id

-- name: instance_by_slug
-- For a request through the proxy, at most once a second where nothing changed. Index: instance_url_slug_key.
SELECT i.*, s.name AS snapshot_name
FROM penstock.instance i LEFT JOIN penstock.snapshot s USING (snapshot_id)
WHERE i.url_slug = :slug

-- name: instance_change
UPDATE penstock.instance
SET name = coalesce(:name, name),
    description = CASE WHEN :set_description::bool THEN :description ELSE description END,
    updated_at = penstock.now()
WHERE instance_id = :instance_id

-- name: instance_count
SELECT count(*)
FROM penstock.instance i
WHERE (:snapshot_id::bigint IS NULL OR i.snapshot_id = :snapshot_id)
  AND (:mapping_id::bigint IS NULL OR i.mapping_id = :mapping_id)
  AND (:owner::text IS NULL OR i.owner_username = :owner)
  AND (:status::text IS NULL OR i.status = :status)
  AND (:search::text IS NULL OR i.name ILIKE :search OR i.description ILIKE :search)
  AND (:created_after::timestamptz IS NULL OR i.created_at >= :created_after)
  AND (:created_before::timestamptz IS NULL OR i.created_at <= :created_before)

-- name: instance_drop
-- The end: its process is gone before. Its events and favourites go with it.
DELETE FROM penstock.instance WHERE instance_id = :instance_id AND status = 'stopping'

-- name: instance_errands
-- Where a process is, or is to be, or is to be no more. Index: instance_errand.
SELECT i.*, NULL::text AS snapshot_name
FROM penstock.instance i
WHERE i.place = :place AND (i.placed OR i.status IN ('starting', 'resuming', 'stopping'))
ORDER BY i.instance_id

-- name: instance_event_add
INSERT INTO penstock.instance_event (instance_id, event_type, actor, details)
VALUES (:instance_id, :event_type, :actor, :details::jsonb)

-- name: instance_events
-- Index: instance_event_instance.
SELECT * FROM penstock.instance_event WHERE instance_id = :instance_id ORDER BY event_id DESC LIMIT 1000

-- name: instance_force
UPDATE penstock.instance SET force_stop = true WHERE instance_id = :instance_id AND status = 'stopping'

-- name: instance_get
SELECT i.*, s.name AS snapshot_name
FROM penstock.instance i LEFT JOIN penstock.snapshot s USING (snapshot_id)
WHERE i.instance_id = :instance_id

-- name: instance_lifecycle
-- A ttl counts from now, and never shortens what was promised before; null ends the ending.
UPDATE penstock.instance
SET ttl = CASE WHEN :set_ttl::bool THEN :ttl::interval ELSE ttl END,
    expires_at = CASE
      WHEN NOT :set_ttl::bool THEN expires_at
      WHEN :ttl::interval IS NULL THEN NULL
      ELSE greatest(expires_at, penstock.now() + :ttl::interval) END,
    inactivity_timeout = CASE WHEN :set_inactivity::bool THEN :inactivity_timeout::interval ELSE inactivity_timeout END,
    updated_at = penstock.now()
WHERE instance_id = :instance_id

-- name: instance_limits_turn
-- Whoever counts against the limits and adds to them does so alone, until the transaction ends.
SELECT pg_advisory_xact_lock(8100512271)

-- name: instance_load
-- What counts against the limits: everything that has a process, will have one, or has one still.
SELECT count(*) FILTER (WHERE owner_username = :owner) AS user_count,
       count(*) AS cluster_count,
       coalesce(sum(memory_gb) FILTER (WHERE owner_username = :owner), 0) AS user_memory,
       coalesce(sum(memory_gb), 0) AS cluster_memory
FROM penstock.instance
WHERE (placed OR status IN ('waiting_for_snapshot', 'starting', 'running', 'resuming', 'stopping'))
  AND instance_id IS DISTINCT FROM :except_id::bigint

-- name: instance_lock
-- An instance, held until the transaction ends. Whoever locks its snapshot too has locked that before.
SELECT i.*, s.name AS snapshot_name
FROM penstock.instance i LEFT JOIN penstock.snapshot s USING (snapshot_id)
WHERE i.instance_id = :instance_id
FOR NO KEY UPDATE OF i

-- name: instance_metrics
-- What a server measured of itself, or the monitor of it. Activity only ever moves on, and never into the future.
UPDATE penstock.instance
SET memory_usage_bytes = coalesce(:memory_usage_bytes, memory_usage_bytes),
    disk_usage_bytes = coalesce(:disk_usage_bytes, disk_usage_bytes),
    query_count = query_count + :queries,
    last_activity_at = greatest(last_activity_at, least(:last_activity_at::timestamptz, penstock.now()))
WHERE instance_id = :instance_id AND status IN ('starting', 'resuming', 'running')

-- name: instance_mine
-- Index: instance_owner.
SELECT instance_id, name, status FROM penstock.instance WHERE owner_username = :owner ORDER BY created_at DESC, instance_id DESC

-- name: instance_moment
SELECT penstock.now()

-- name: instance_move
-- The next step of an instance that the caller has locked and whose step it has checked.
-- Invariant: a cause of failure that is there stays; a new launch begins without the last one's.
UPDATE penstock.instance
SET status = :status,
    updated_at = penstock.now(),
    status_at = penstock.now(),
    launch = launch + :launching::bool::int,
    progress = CASE WHEN :launching THEN NULL ELSE progress END,
    started_at = CASE WHEN :status = 'running' THEN penstock.now() ELSE started_at END,
    last_activity_at = CASE WHEN :status = 'running' THEN penstock.now() ELSE last_activity_at END,
    error_code = CASE WHEN :launching THEN NULL ELSE coalesce(error_code, :error_code) END,
    error_message = CASE WHEN :launching THEN NULL WHEN error_code IS NULL THEN :error_message ELSE error_message END,
    failed_phase = CASE WHEN :launching THEN NULL WHEN error_code IS NULL THEN :failed_phase ELSE failed_phase END,
    stack_trace = CASE WHEN :launching THEN NULL WHEN error_code IS NULL THEN :stack_trace ELSE stack_trace END,
    memory_gb = coalesce(:memory_gb, memory_gb),
    node_count = coalesce(:node_count, node_count),
    edge_count = coalesce(:edge_count, edge_count),
    force_stop = force_stop OR :force_stop
WHERE instance_id = :instance_id

-- name: instance_overdue
-- Starts that take too long, and stops that do.
SELECT i.*, NULL::text AS snapshot_name
FROM penstock.instance i
WHERE (status IN ('starting', 'resuming') AND status_at <= penstock.now() - make_interval(secs => :starting))
   OR (status = 'stopping' AND NOT force_stop AND status_at <= penstock.now() - make_interval(secs => :stopping))
ORDER BY i.instance_id

-- name: instance_page
SELECT i.*, s.name AS snapshot_name
FROM penstock.instance i LEFT JOIN penstock.snapshot s USING (snapshot_id)
WHERE (:snapshot_id::bigint IS NULL OR i.snapshot_id = :snapshot_id)
  AND (:mapping_id::bigint IS NULL OR i.mapping_id = :mapping_id)
  AND (:owner::text IS NULL OR i.owner_username = :owner)
  AND (:status::text IS NULL OR i.status = :status)
  AND (:search::text IS NULL OR i.name ILIKE :search OR i.description ILIKE :search)
  AND (:created_after::timestamptz IS NULL OR i.created_at >= :created_after)
  AND (:created_before::timestamptz IS NULL OR i.created_at <= :created_before)
ORDER BY i.created_at DESC, i.instance_id DESC
OFFSET :offset LIMIT :limit

-- name: instance_place
-- Before a process is started. Invariant: one launch is placed once, and only while it is wanted.
UPDATE penstock.instance
SET placed = true, launched_at = penstock.now()
WHERE instance_id = :instance_id AND launch = :launch AND NOT placed AND status IN ('starting', 'resuming')

-- name: instance_progress
UPDATE penstock.instance SET progress = :progress::jsonb, updated_at = penstock.now()
WHERE instance_id = :instance_id AND status IN ('starting', 'resuming', 'running')

-- name: instance_resize
UPDATE penstock.instance
SET cpu_cores = coalesce(:cpu_cores, cpu_cores), memory_gb = coalesce(:memory_gb, memory_gb), updated_at = penstock.now()
WHERE instance_id = :instance_id

-- name: instance_states
-- How many instances each owner has in each state; how many of them the limits count, as instance_load does; and for
-- how many nothing runs anywhere.
SELECT status, owner_username, count(*) AS count, count(*) FILTER (WHERE NOT placed) AS without_pod_name,
       count(*) FILTER (WHERE placed OR status IN ('waiting_for_snapshot', 'starting', 'running', 'resuming', 'stopping')) AS used
FROM penstock.instance GROUP BY status, owner_username

-- name: instance_unplace
UPDATE penstock.instance SET placed = false WHERE instance_id = :instance_id AND launch = :launch AND placed

-- name: instance_waiting
-- Those that wait for a snapshot, locked in one order. Index: instance_snapshot.
SELECT i.*, s.name AS snapshot_name
FROM penstock.instance i JOIN penstock.snapshot s USING (snapshot_id)
WHERE i.snapshot_id = :snapshot_id AND i.status = 'waiting_for_snapshot'
ORDER BY i.instance_id
FOR NO KEY UPDATE OF i
