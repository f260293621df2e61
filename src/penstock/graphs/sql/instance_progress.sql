UPDATE penstock.instance SET progress = :progress::jsonb, updated_at = penstock.now()
WHERE instance_id = :instance_id AND status IN ('starting', 'resuming', 'running')
