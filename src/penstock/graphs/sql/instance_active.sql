UPDATE penstock.instance SET last_activity_at = penstock.now() WHERE instance_id = :instance_id AND status = 'running'
