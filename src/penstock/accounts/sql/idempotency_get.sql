SELECT role, digest, answered_at, status, headers, body FROM penstock_secret.idempotency WHERE idempotency_id = :id
