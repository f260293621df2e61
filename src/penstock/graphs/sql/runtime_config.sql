-- name: cluster_use
-- What everything takes, in one row.
SELECT (SELECT coalesce(sum(memory_usage_bytes), 0)::bigint FROM penstock.instance WHERE status = 'running') AS instance_memory_bytes,
       (SELECT coalesce(sum(disk_usage_bytes), 0)::bigint FROM penstock.instance WHERE status = 'running') AS instance_disk_bytes,
       (SELECT coalesce(sum(size_bytes), 0)::bigint FROM penstock.snapshot WHERE prefix IS NOT NULL) AS snapshot_bytes,
       (SELECT count(*) FROM penstock.mapping) AS mappings,
       pg_database_size(current_database()) AS database_bytes

-- name: config_get
-- What operators have set, by name; what nobody has set has no row. Index: platform_config primary key.
SELECT name, value, updated_at, updated_by FROM penstock.platform_config WHERE name = ANY (:names::text[])

-- name: config_put
-- Fields that are given replace those that were set, the others stay. Locks the row, so that whoever comes second
-- checks what the first has left.
INSERT INTO penstock.platform_config AS c (name, value, updated_by) VALUES (:name, :value::jsonb, :updated_by)
ON CONFLICT (name) DO UPDATE SET value = c.value || excluded.value, updated_at = penstock.now(), updated_by = excluded.updated_by
RETURNING name, value, updated_at, updated_by
