SELECT role, digest, answered_at, status, headers, body FROM penstock.idempotency WHERE idempotency_id = :id
