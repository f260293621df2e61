-- What everything takes, in one row.
SELECT (SELECT coalesce(sum(memory_usage_bytes), 0)::bigint FROM penstock.instance WHERE status = 'running') AS instance_memory_bytes,
       (SELECT coalesce(sum(disk_usage_bytes), 0)::bigint FROM penstock.instance WHERE status = 'running') AS instance_disk_bytes,
       (SELECT coalesce(sum(size_bytes), 0)::bigint FROM penstock.snapshot WHERE prefix IS NOT NULL) AS snapshot_bytes,
       (SELECT count(*) FROM penstock.mapping) AS mappings,
       pg_database_size(current_database()) AS database_bytes
