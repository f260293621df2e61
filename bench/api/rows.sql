-- A house that is lived in: 10,000 instances of 200 people, and one mapping of 50 versions with 20 snapshots each.
INSERT INTO penstock.mapping (owner_username, name, current_version) VALUES ('ann', 'tree', 50);
INSERT INTO penstock.mapping_version (mapping_id, version, node_definitions, edge_definitions, node_count, edge_type_count,
                                      change_description, created_by)
SELECT currval('penstock.mapping_mapping_id_seq'), v, '[]', '[]', 0, 0, 'change ' || v, 'ann' FROM generate_series(1, 50) v;
INSERT INTO penstock.snapshot (mapping_id, mapping_version, owner_username, name, status, size_bytes, prefix)
SELECT currval('penstock.mapping_mapping_id_seq'), v, 'ann', 'snapshot ' || v || '.' || n, 'ready', 1000000, 'ann/1/v' || v || '/' || n || '/'
FROM generate_series(1, 50) v, generate_series(1, 20) n;
INSERT INTO penstock.instance (snapshot_id, mapping_id, mapping_version, owner_username, wrapper_type, name, status, url_slug,
                               place, cpu_cores, memory_gb, error_code, error_message, created_at)
SELECT s.snapshot_id, s.mapping_id, s.mapping_version, 'user' || n % 200, 'ladybug', 'instance ' || s.snapshot_id || '.' || n,
       'failed', md5(s.snapshot_id || '.' || n), 'elsewhere', 2, 4, 'STARTUP_FAILED', 'It could not begin.',
       now() - (n * 1000 + s.snapshot_id) * interval '1 second'
FROM penstock.snapshot s, generate_series(1, 10) n;
ANALYZE penstock.mapping;
ANALYZE penstock.mapping_version;
ANALYZE penstock.snapshot;
ANALYZE penstock.instance;
