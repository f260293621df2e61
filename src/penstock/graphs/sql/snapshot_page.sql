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
