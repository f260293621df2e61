SELECT count(*)
FROM penstock.instance i
WHERE (:snapshot_id::bigint IS NULL OR i.snapshot_id = :snapshot_id)
  AND (:mapping_id::bigint IS NULL OR i.mapping_id = :mapping_id)
  AND (:owner::text IS NULL OR i.owner_username = :owner)
  AND (:status::text IS NULL OR i.status = :status)
  AND (:search::text IS NULL OR i.name ILIKE :search OR i.description ILIKE :search)
  AND (:created_after::timestamptz IS NULL OR i.created_at >= :created_after)
  AND (:created_before::timestamptz IS NULL OR i.created_at <= :created_before)
