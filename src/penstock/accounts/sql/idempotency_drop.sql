-- What is older than a day, a batch at a time. Index: idempotency_begun.
DELETE FROM penstock_secret.idempotency WHERE idempotency_id IN (
  SELECT idempotency_id FROM penstock_secret.idempotency
  WHERE begun_at < penstock.now() - interval '24 hours'
  ORDER BY begun_at LIMIT :limit
)
