-- name: tree_instances
-- Index: instance_snapshot.
SELECT instance_id, snapshot_id, name, status FROM penstock.instance
WHERE snapshot_id = ANY (:snapshot_ids::bigint[])
ORDER BY created_at DESC, instance_id DESC

-- name: tree_snapshots
-- Index: snapshot_mapping.
SELECT snapshot_id, mapping_version, name, status, created_at FROM penstock.snapshot
WHERE mapping_id = :mapping_id AND (:status::text IS NULL OR status = :status)
ORDER BY created_at DESC, snapshot_id DESC

-- name: tree_versions
-- Index: mapping_version primary key.
SELECT version, change_description, created_at, created_by FROM penstock.mapping_version
WHERE mapping_id = :mapping_id ORDER BY version DESC
