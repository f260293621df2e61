-- The next version. Invariant: the caller has the mapping's row locked, or has just made it.
INSERT INTO penstock.mapping_version
  (mapping_id, version, node_definitions, edge_definitions, node_count, edge_type_count, change_description, created_by)
VALUES (:mapping_id, :version, :nodes::jsonb, :edges::jsonb, :node_count, :edge_type_count, :change_description, :created_by)
