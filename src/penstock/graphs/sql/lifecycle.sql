-- name: lifecycle_instances
-- Instances that have lived their time (`expired`), or that nobody has asked anything for too long. Those that stop are
-- on their way already; one that starts or waits is not idle. Reads all instances, of which there are few.
SELECT instance_id, coalesce(expires_at <= penstock.now(), false) AS expired
FROM penstock.instance
WHERE status <> 'stopping'
  AND (expires_at <= penstock.now()
       OR (status = 'running' AND coalesce(last_activity_at, started_at, created_at) + inactivity_timeout <= penstock.now()))
ORDER BY instance_id
LIMIT :limit

-- name: lifecycle_mappings
-- Mappings that have lived their time, or that nobody has used for too long, and that have no snapshot.
-- Index: snapshot_mapping.
SELECT m.mapping_id
FROM penstock.mapping m
WHERE (m.expires_at <= penstock.now() OR m.last_used_at + m.inactivity_timeout <= penstock.now())
  AND NOT EXISTS (SELECT FROM penstock.snapshot s WHERE s.mapping_id = m.mapping_id)
ORDER BY m.mapping_id
LIMIT :limit

-- name: lifecycle_snapshots
-- Snapshots that have lived their time, or that nothing has used for too long, and that nothing stands on.
-- Index: instance_snapshot.
SELECT s.snapshot_id
FROM penstock.snapshot s
WHERE s.status NOT IN ('pending', 'creating')
  AND (s.expires_at <= penstock.now()
       OR coalesce(s.last_used_at, s.ready_at, s.updated_at) + s.inactivity_timeout <= penstock.now())
  AND NOT EXISTS (
    SELECT FROM penstock.instance i WHERE i.snapshot_id = s.snapshot_id AND i.status NOT IN ('stopping', 'failed'))
ORDER BY s.snapshot_id
LIMIT :limit
