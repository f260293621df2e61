-- At most one write a minute and key.
UPDATE penstock_secret.api_key SET last_used_at = penstock.now()
WHERE api_key_id = :api_key_id
  AND (last_used_at IS NULL OR last_used_at < penstock.now() - interval '1 minute')
