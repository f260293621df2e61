-- name: idempotency_begin
-- The turn of one key: taken when there is none, when the last one's day is over, or when it was left lying.
INSERT INTO penstock_secret.idempotency AS i (idempotency_id, username, role, method, path, digest, attempt_id)
VALUES (:id, :username, :role, :method, :path, :digest, :attempt_id)
ON CONFLICT (idempotency_id) DO UPDATE SET
  role = excluded.role, digest = excluded.digest, attempt_id = excluded.attempt_id, begun_at = excluded.begun_at,
  answered_at = NULL, status = NULL, headers = NULL, body = NULL
WHERE i.begun_at < penstock.now() - interval '24 hours'
   OR (i.answered_at IS NULL AND i.begun_at < penstock.now() - interval '5 minutes')
RETURNING attempt_id

-- name: idempotency_drop
-- What is older than a day, a batch at a time. Index: idempotency_begun.
DELETE FROM penstock_secret.idempotency WHERE idempotency_id IN (
  SELECT idempotency_id FROM penstock_secret.idempotency
  WHERE begun_at < penstock.now() - interval '24 hours'
  ORDER BY begun_at LIMIT :limit
)

-- name: idempotency_forget
DELETE FROM penstock_secret.idempotency WHERE idempotency_id = :id AND attempt_id = :attempt_id

-- name: idempotency_get
SELECT role, digest, answered_at, status, headers, body FROM penstock_secret.idempotency WHERE idempotency_id = :id

-- name: idempotency_keep
-- Only the turn that began it may end it.
UPDATE penstock_secret.idempotency
SET answered_at = penstock.now(), status = :status, headers = :headers, body = :body
WHERE idempotency_id = :id AND attempt_id = :attempt_id
