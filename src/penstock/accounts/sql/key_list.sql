-- Newest first, also those that no longer work. Index: api_key_username.
SELECT api_key_id, username, name, hint, created_at, created_by, expires_at, revoked_at, last_used_at
FROM penstock_secret.api_key
WHERE username = :username
ORDER BY api_key_id DESC
LIMIT 200
