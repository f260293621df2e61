-- Instances that have lived their time (`expired`), or that nobody has asked anything for too long. Those that stop are
-- on their way already; one that starts or waits is not idle. Reads all instances, of which there are few.
SELECT instance_id, coalesce(expires_at <= penstock.now(), false) AS expired
FROM penstock.instance
WHERE status <> 'stopping'
  AND (expires_at <= penstock.now()
       OR (status = 'running' AND coalesce(last_activity_at, started_at, created_at) + inactivity_timeout <= penstock.now()))
ORDER BY instance_id
LIMIT :limit
