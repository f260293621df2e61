-- Those that wait for a snapshot, locked in one order. Index: instance_snapshot.
SELECT i.*, s.name AS snapshot_name
FROM penstock.instance i JOIN penstock.snapshot s USING (snapshot_id)
WHERE i.snapshot_id = :snapshot_id AND i.status = 'waiting_for_snapshot'
ORDER BY i.instance_id
FOR NO KEY UPDATE OF i
