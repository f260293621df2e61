-- Only the turn that began it may end it.
UPDATE penstock_secret.idempotency
SET answered_at = penstock.now(), status = :status, headers = :headers, body = :body
WHERE idempotency_id = :id AND attempt_id = :attempt_id
