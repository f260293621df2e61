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
