SELECT count(*) FROM penstock_secret.api_key
WHERE username = :username AND revoked_at IS NULL AND expires_at > penstock.now()
