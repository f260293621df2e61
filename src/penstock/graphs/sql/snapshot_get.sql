SELECT * FROM penstock.snapshot WHERE snapshot_id = :snapshot_id
