UPDATE penstock.mapping SET last_used_at = penstock.now() WHERE mapping_id = :mapping_id
