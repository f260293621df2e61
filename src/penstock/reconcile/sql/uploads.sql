-- name: upload_add
INSERT INTO penstock.upload (upload_id, owner_username, name, key, rows, size_bytes, sha256, columns)
VALUES (:upload_id, :owner_username, :name, :key, :rows, :size_bytes, :sha256, :columns)

-- name: upload_count
SELECT count(*) FROM penstock.upload WHERE :owner_username::text IS NULL OR owner_username = :owner_username::text

-- name: upload_drop
-- Not while an active run reads it (index: run_open).
DELETE FROM penstock.upload u WHERE upload_id = :upload_id
  AND NOT EXISTS (
    SELECT FROM penstock.run
    WHERE status IN ('staging', 'ready', 'executing')
      AND (inputs->'left'->>'upload' = u.upload_id OR inputs->'right'->>'upload' = u.upload_id)
  )
RETURNING key

-- name: upload_expire
-- Least recently used first (index: upload_used_at); not those that an active run reads.
DELETE FROM penstock.upload WHERE upload_id IN (
  SELECT upload_id FROM penstock.upload u
  WHERE used_at < penstock.now() - make_interval(days => :days)
    AND NOT EXISTS (
      SELECT FROM penstock.run
      WHERE status IN ('staging', 'ready', 'executing')
        AND (inputs->'left'->>'upload' = u.upload_id OR inputs->'right'->>'upload' = u.upload_id)
    )
  ORDER BY used_at LIMIT :limit FOR UPDATE SKIP LOCKED
)
RETURNING key

-- name: upload_get
SELECT upload_id, owner_username, name, key, rows, size_bytes, sha256, columns, created_at,
  used_at + make_interval(days => :days) AS expires_at
FROM penstock.upload WHERE upload_id = :upload_id

-- name: upload_list
-- Newest first, of one owner or of all.
SELECT upload_id, owner_username, name, key, rows, size_bytes, sha256, columns, created_at,
  used_at + make_interval(days => :days) AS expires_at
FROM penstock.upload WHERE :owner_username::text IS NULL OR owner_username = :owner_username::text
ORDER BY created_at DESC, upload_id LIMIT :limit OFFSET :offset

-- name: upload_quota_lock
-- Locks a user's quota until the transaction ends: two concurrent uploads cannot both pass.
SELECT pg_advisory_xact_lock(hashtext('penstock.upload'), hashtext(:owner_username))

-- name: upload_usage
SELECT count(*) AS files, coalesce(sum(size_bytes), 0)::bigint AS bytes FROM penstock.upload WHERE owner_username = :owner_username

-- name: upload_used
UPDATE penstock.upload SET used_at = penstock.now() WHERE upload_id = :upload_id
