UPDATE penstock.snapshot SET prefix = :prefix WHERE snapshot_id = :snapshot_id
