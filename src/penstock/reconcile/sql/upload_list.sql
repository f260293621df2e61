-- Newest first, of one owner or of all.
SELECT upload_id, owner_username, name, key, rows, size_bytes, sha256, columns, created_at,
  used_at + make_interval(days => :days) AS expires_at
FROM penstock.upload WHERE :owner_username::text IS NULL OR owner_username = :owner_username::text
ORDER BY created_at DESC, upload_id LIMIT :limit OFFSET :offset
