-- Index: snapshot_mapping.
SELECT snapshot_id, mapping_version, name, status, created_at FROM penstock.snapshot
WHERE mapping_id = :mapping_id AND (:status::text IS NULL OR status = :status)
ORDER BY created_at DESC, snapshot_id DESC
