-- name: mapping_add
-- A new mapping; its first version is added next, in the same transaction.
INSERT INTO penstock.mapping (owner_username, name, description, data_source_id, ttl, inactivity_timeout, expires_at)
VALUES (:owner_username, :name, :description, :data_source_id, :ttl, :inactivity_timeout, penstock.now() + :ttl::interval)
RETURNING mapping_id

-- name: mapping_count
SELECT count(*)
FROM penstock.mapping m
WHERE (:owner::text IS NULL OR m.owner_username = :owner)
  AND (:search::text IS NULL OR m.name ILIKE :search OR m.description ILIKE :search)
  AND (:created_after::timestamptz IS NULL OR m.created_at >= :created_after)
  AND (:created_before::timestamptz IS NULL OR m.created_at <= :created_before)

-- name: mapping_dependants
-- The snapshots that need a mapping, of any version: how many, and the first of them. Index: snapshot_mapping.
SELECT snapshot_id, count(*) OVER () AS total FROM penstock.snapshot WHERE mapping_id = :mapping_id
ORDER BY snapshot_id LIMIT :limit

-- name: mapping_drop
-- Its versions go with it. A snapshot that was made since somebody looked keeps both, by its foreign key.
DELETE FROM penstock.mapping WHERE mapping_id = :mapping_id

-- name: mapping_get
-- One mapping as lists show it. Index: mapping primary key, mapping_version primary key, snapshot_mapping.
SELECT m.*, v.node_count, v.edge_type_count,
       (SELECT count(*) FROM penstock.snapshot s WHERE s.mapping_id = m.mapping_id) AS snapshot_count
FROM penstock.mapping m
JOIN penstock.mapping_version v ON v.mapping_id = m.mapping_id AND v.version = m.current_version
WHERE m.mapping_id = :mapping_id

-- name: mapping_lifecycle
-- A new life counts from now.
UPDATE penstock.mapping
SET ttl = CASE WHEN :set_ttl THEN :ttl::interval ELSE ttl END,
    expires_at = CASE WHEN :set_ttl THEN penstock.now() + :ttl::interval ELSE expires_at END,
    inactivity_timeout = CASE WHEN :set_inactivity THEN :inactivity_timeout::interval ELSE inactivity_timeout END,
    revision = revision + 1,
    updated_at = penstock.now()
WHERE mapping_id = :mapping_id

-- name: mapping_lock
-- Held until the transaction ends: of two who change a mapping, one is second. Snapshots of it can be made meanwhile.
SELECT revision FROM penstock.mapping WHERE mapping_id = :mapping_id FOR NO KEY UPDATE

-- name: mapping_on_source
-- The mappings that need a data source: how many, and the first of them. Index: mapping_source.
SELECT mapping_id, count(*) OVER () AS total FROM penstock.mapping WHERE data_source_id = :data_source_id
ORDER BY mapping_id LIMIT :limit

-- name: mapping_page
-- Mappings as lists show them. Index: mapping_created, mapping_owner.
WITH page AS MATERIALIZED (
  SELECT m.*
  FROM penstock.mapping m
  WHERE (:owner::text IS NULL OR m.owner_username = :owner)
    AND (:search::text IS NULL OR m.name ILIKE :search OR m.description ILIKE :search)
    AND (:created_after::timestamptz IS NULL OR m.created_at >= :created_after)
    AND (:created_before::timestamptz IS NULL OR m.created_at <= :created_before)
  ORDER BY m.created_at DESC, m.mapping_id DESC
  OFFSET :offset LIMIT :limit
)
SELECT m.*, v.node_count, v.edge_type_count,
       (SELECT count(*) FROM penstock.snapshot s WHERE s.mapping_id = m.mapping_id) AS snapshot_count
FROM page m
JOIN penstock.mapping_version v ON v.mapping_id = m.mapping_id AND v.version = m.current_version
ORDER BY m.created_at DESC, m.mapping_id DESC

-- name: mapping_right
-- Whether somebody may run a mapping on a source. :is_admin NULL: as the table of users says.
SELECT penstock.may_run_mapping(:mapping_id, :data_source_id, :username::text,
                                coalesce(:is_admin::boolean, penstock.has_admin_role(:username)))

-- name: mapping_update
-- Everything of a mapping that is not in its versions. Invariant: the caller has its row locked.
UPDATE penstock.mapping
SET name = :name,
    description = :description,
    data_source_id = :data_source_id,
    current_version = :current_version,
    revision = revision + 1,
    updated_at = penstock.now(),
    last_used_at = penstock.now()
WHERE mapping_id = :mapping_id

-- name: mapping_used
UPDATE penstock.mapping SET last_used_at = penstock.now() WHERE mapping_id = :mapping_id

-- name: mapping_version_add
-- The next version. Invariant: the caller has the mapping's row locked, or has just made it.
INSERT INTO penstock.mapping_version
  (mapping_id, version, node_definitions, edge_definitions, node_count, edge_type_count, change_description, created_by)
VALUES (:mapping_id, :version, :nodes::jsonb, :edges::jsonb, :node_count, :edge_type_count, :change_description, :created_by)

-- name: mapping_version_get
-- One version of a mapping; without a number, its current one. Index: mapping_version primary key.
SELECT v.*
FROM penstock.mapping m
JOIN penstock.mapping_version v ON v.mapping_id = m.mapping_id AND v.version = coalesce(:version::int, m.current_version)
WHERE m.mapping_id = :mapping_id

-- name: mapping_versions
-- The versions of a mapping, newest first, without what they say. Index: mapping_version primary key.
SELECT v.mapping_id, v.version, v.node_count, v.edge_type_count, v.change_description, v.created_at, v.created_by,
       (SELECT count(*) FROM penstock.snapshot s WHERE s.mapping_id = v.mapping_id AND s.mapping_version = v.version)
         AS snapshot_count
FROM penstock.mapping_version v
WHERE v.mapping_id = :mapping_id
ORDER BY v.version DESC
OFFSET :offset LIMIT :limit
