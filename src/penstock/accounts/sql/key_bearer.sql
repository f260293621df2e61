-- Read for a request with a key, unless it was within the last second and nothing that bears on it changed since.
-- Index: api_key_digest_key, account_pkey.
SELECT k.api_key_id, a.username, a.role, a.is_active,
  coalesce(k.last_used_at > penstock.now() - interval '1 minute'
    AND a.last_login_at > penstock.now() - interval '1 minute', false) AS noted
FROM penstock_secret.api_key k JOIN penstock.account a USING (username)
WHERE k.digest = :digest AND k.revoked_at IS NULL AND k.expires_at > penstock.now()
