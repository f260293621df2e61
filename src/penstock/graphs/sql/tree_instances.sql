-- Index: instance_snapshot.
SELECT instance_id, snapshot_id, name, status FROM penstock.instance
WHERE snapshot_id = ANY (:snapshot_ids::bigint[])
ORDER BY created_at DESC, instance_id DESC
