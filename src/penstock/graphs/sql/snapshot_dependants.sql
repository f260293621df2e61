-- The instances that need a snapshot: how many, and the first of them. Index: instance_snapshot.
SELECT instance_id, name, status, count(*) OVER () AS total
FROM penstock.instance
WHERE snapshot_id = :snapshot_id
  AND status IN ('waiting_for_snapshot', 'starting', 'running', 'suspended', 'resuming')
ORDER BY instance_id LIMIT :limit
