-- Makes due rows ready: scheduled ones, and parked ones whose turn to poll has come. Their order key is kept: they are old.
-- Index: live_due. Locks: the promoted rows, SKIP LOCKED.
WITH due AS MATERIALIZED (
  SELECT job_id FROM penstock.live
  WHERE status IN (2, 3) AND wake_at <= penstock.now()
  ORDER BY wake_at
  LIMIT :limit
  FOR NO KEY UPDATE SKIP LOCKED
), promoted AS (
  UPDATE penstock.live l SET status = 0, wake_at = NULL
  FROM due WHERE l.job_id = due.job_id
  RETURNING l.job_id, l.queue, l.order_key
), announced AS (
  INSERT INTO penstock.outbox (job_id, order_key, queue)
  SELECT job_id, order_key, queue FROM promoted WHERE :announce
)
SELECT queue, order_key FROM promoted
