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
