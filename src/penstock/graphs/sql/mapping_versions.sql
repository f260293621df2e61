-- The versions of a mapping, newest first, without what they say. Index: mapping_version primary key.
SELECT v.mapping_id, v.version, v.node_count, v.edge_type_count, v.change_description, v.created_at, v.created_by,
       (SELECT count(*) FROM penstock.snapshot s WHERE s.mapping_id = v.mapping_id AND s.mapping_version = v.version)
         AS snapshot_count
FROM penstock.mapping_version v
WHERE v.mapping_id = :mapping_id
ORDER BY v.version DESC
OFFSET :offset LIMIT :limit
