-- Fails jobs that wait (ready, scheduled, parked) past their deadline.
-- Index: live_deadline. Locks: the expired rows, SKIP LOCKED.
WITH overdue AS MATERIALIZED (
  SELECT job_id FROM penstock.live
  WHERE status <> 1 AND deadline <= penstock.now()
  ORDER BY deadline LIMIT :limit
  FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM penstock.live l USING overdue o, penstock.job j
  WHERE l.job_id = o.job_id AND j.job_id = o.job_id
  RETURNING l.job_id, l.attempt_no, l.group_id, l.state, j.kind, j.payload, j.cleanup_kind
), ended AS (
  INSERT INTO penstock.outcome (job_id, attempt_no, status, error)
  SELECT job_id, attempt_no, 11, jsonb_build_object('code', 'DEADLINE_EXCEEDED', 'message', 'The job waited past its deadline.')
  FROM gone
)
SELECT job_id, group_id, 11::smallint AS status, state, kind, payload, cleanup_kind FROM gone
