SELECT upload_id, owner_username, name, key, rows, size_bytes, sha256, columns, created_at FROM penstock.upload WHERE upload_id = :upload_id
