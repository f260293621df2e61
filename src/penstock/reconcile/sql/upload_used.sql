UPDATE penstock.upload SET used_at = penstock.now() WHERE upload_id = :upload_id
