SELECT count(*)
FROM penstock.mapping m
WHERE (:owner::text IS NULL OR m.owner_username = :owner)
  AND (:search::text IS NULL OR m.name ILIKE :search OR m.description ILIKE :search)
  AND (:created_after::timestamptz IS NULL OR m.created_at >= :created_after)
  AND (:created_before::timestamptz IS NULL OR m.created_at <= :created_before)
