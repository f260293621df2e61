SELECT job_id FROM penstock.snapshot_export WHERE snapshot_id = :snapshot_id ORDER BY position
