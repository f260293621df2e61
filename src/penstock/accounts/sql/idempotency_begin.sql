-- The turn of one key: taken when there is none, when the last one's day is over, or when it was left lying.
INSERT INTO penstock_secret.idempotency AS i (idempotency_id, username, role, method, path, digest, attempt_id)
VALUES (:id, :username, :role, :method, :path, :digest, :attempt_id)
ON CONFLICT (idempotency_id) DO UPDATE SET
  role = excluded.role, digest = excluded.digest, attempt_id = excluded.attempt_id, begun_at = excluded.begun_at,
  answered_at = NULL, status = NULL, headers = NULL, body = NULL
WHERE i.begun_at < penstock.now() - interval '24 hours'
   OR (i.answered_at IS NULL AND i.begun_at < penstock.now() - interval '5 minutes')
RETURNING attempt_id
