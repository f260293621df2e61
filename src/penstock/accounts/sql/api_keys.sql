-- name: key_add
INSERT INTO penstock_secret.api_key (username, name, hint, digest, created_by, expires_at)
VALUES (:username, :name, :hint, :digest, :actor, penstock.now() + :life::interval)
RETURNING api_key_id, username, name, hint, created_at, created_by, expires_at, revoked_at, last_used_at

-- name: key_bearer
-- Read for a request with a key, unless it was within the last second and nothing that bears on it changed since.
-- Index: api_key_digest_key, account_pkey.
SELECT k.api_key_id, a.username, a.role, a.is_active,
  coalesce(k.last_used_at > penstock.now() - interval '1 minute'
    AND a.last_login_at > penstock.now() - interval '1 minute', false) AS noted
FROM penstock_secret.api_key k JOIN penstock.account a USING (username)
WHERE k.digest = :digest AND k.revoked_at IS NULL AND k.expires_at > penstock.now()

-- name: key_count
SELECT count(*) FROM penstock_secret.api_key
WHERE username = :username AND revoked_at IS NULL AND expires_at > penstock.now()

-- name: key_exists
SELECT EXISTS (SELECT FROM penstock_secret.api_key WHERE api_key_id = :api_key_id AND username = :username)

-- name: key_list
-- Newest first, also those that no longer work. Index: api_key_username.
SELECT api_key_id, username, name, hint, created_at, created_by, expires_at, revoked_at, last_used_at
FROM penstock_secret.api_key
WHERE username = :username
ORDER BY api_key_id DESC
LIMIT 200

-- name: key_revoke
UPDATE penstock_secret.api_key SET revoked_at = penstock.now()
WHERE username = :username AND revoked_at IS NULL AND (:api_key_id::bigint IS NULL OR api_key_id = :api_key_id)

-- name: key_used
-- At most one write a minute and key.
UPDATE penstock_secret.api_key SET last_used_at = penstock.now()
WHERE api_key_id = :api_key_id
  AND (last_used_at IS NULL OR last_used_at < penstock.now() - interval '1 minute')
