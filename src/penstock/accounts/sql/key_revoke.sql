UPDATE penstock_secret.api_key SET revoked_at = penstock.now()
WHERE username = :username AND revoked_at IS NULL AND (:api_key_id::bigint IS NULL OR api_key_id = :api_key_id)
