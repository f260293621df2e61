-- One mapping as lists show it. Index: mapping primary key, mapping_version primary key, snapshot_mapping.
SELECT m.*, v.node_count, v.edge_type_count,
       (SELECT count(*) FROM penstock.snapshot s WHERE s.mapping_id = m.mapping_id) AS snapshot_count
FROM penstock.mapping m
JOIN penstock.mapping_version v ON v.mapping_id = m.mapping_id AND v.version = m.current_version
WHERE m.mapping_id = :mapping_id
