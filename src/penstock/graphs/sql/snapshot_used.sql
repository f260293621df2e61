UPDATE penstock.snapshot SET last_used_at = penstock.now() WHERE snapshot_id = :snapshot_id
