UPDATE penstock.snapshot SET publish_job = :publish_job, updated_at = penstock.now() WHERE snapshot_id = :snapshot_id
