SELECT upload_id, owner_username, name, key, rows, size_bytes, sha256, columns, created_at,
  used_at + make_interval(days => :days) AS expires_at
FROM penstock.upload WHERE upload_id = :upload_id
