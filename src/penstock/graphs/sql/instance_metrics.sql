-- What a server measured of itself, or the monitor of it. Activity only ever moves on, and never into the future.
UPDATE penstock.instance
SET memory_usage_bytes = coalesce(:memory_usage_bytes, memory_usage_bytes),
    disk_usage_bytes = coalesce(:disk_usage_bytes, disk_usage_bytes),
    query_count = query_count + :queries,
    last_activity_at = greatest(last_activity_at, least(:last_activity_at::timestamptz, penstock.now()))
WHERE instance_id = :instance_id AND status IN ('starting', 'resuming', 'running')
