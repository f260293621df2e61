-- Parked exports that nobody has asked after for long: due now, so that a worker asks the engine by the query's id.
-- Index: snapshot_open, live primary key, attempt_job. Locks: the woken rows, SKIP LOCKED.
WITH silent AS MATERIALIZED (
  SELECT l.job_id
  FROM penstock.snapshot s
  JOIN penstock.snapshot_export e USING (snapshot_id)
  JOIN penstock.live l ON l.job_id = e.job_id
  WHERE s.status IN ('pending', 'creating') AND l.status = 2 AND l.wake_at > penstock.now()
    AND (SELECT max(a.ended_at) FROM penstock.attempt a WHERE a.job_id = l.job_id) <= penstock.now() - make_interval(secs => :seconds)
  LIMIT :limit
  FOR UPDATE OF l SKIP LOCKED
)
UPDATE penstock.live l SET wake_at = penstock.now() FROM silent s WHERE l.job_id = s.job_id
RETURNING l.job_id
