UPDATE penstock.run SET staging_group = :group_id, updated_at = penstock.now() WHERE run_id = :run_id
