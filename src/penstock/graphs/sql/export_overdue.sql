-- Exports that take longer than they may, from the submission of their query or from their claim: their time is up now,
-- and the reaper ends them as it ends every job past its deadline. Index: snapshot_open, live primary key.
-- Locks: the overdue rows, SKIP LOCKED.
WITH overdue AS MATERIALIZED (
  SELECT l.job_id
  FROM penstock.snapshot s
  JOIN penstock.snapshot_export e USING (snapshot_id)
  JOIN penstock.live l ON l.job_id = e.job_id
  WHERE s.status IN ('pending', 'creating')
    AND coalesce((l.state ->> 'submitted_at')::timestamptz, l.claimed_at) <= penstock.now() - make_interval(secs => :seconds)
    AND (l.deadline IS NULL OR l.deadline > penstock.now())
  LIMIT :limit
  FOR UPDATE OF l SKIP LOCKED
)
UPDATE penstock.live l
SET deadline = penstock.now(), overdue = l.status = 1, lease_until = CASE WHEN l.status = 1 THEN penstock.now() END
FROM overdue o WHERE l.job_id = o.job_id
RETURNING l.job_id
