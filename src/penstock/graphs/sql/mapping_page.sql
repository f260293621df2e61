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
