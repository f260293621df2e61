DELETE FROM penstock_secret.idempotency WHERE idempotency_id = :id AND attempt_id = :attempt_id
