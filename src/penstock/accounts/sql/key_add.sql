INSERT INTO penstock_secret.api_key (username, name, hint, digest, created_by, expires_at)
VALUES (:username, :name, :hint, :digest, :actor, penstock.now() + :life::interval)
RETURNING api_key_id, username, name, hint, created_at, created_by, expires_at, revoked_at, last_used_at
