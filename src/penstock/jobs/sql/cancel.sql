-- Ends a job whatever it is doing. The fence goes with the live row: a running attempt finds out at its next write.
-- Invariant: the end is written by whoever deletes the live row. Index: live primary key. Locks: waits for a write in flight.
WITH gone AS (
  DELETE FROM penstock.live l USING penstock.job j
  WHERE l.job_id = :job_id AND j.job_id = l.job_id
  RETURNING l.job_id, l.attempt_id, l.attempt_no, l.worker, l.claimed_at, l.group_id, l.state,
            j.kind, j.payload, j.cleanup_kind
), ended AS (
  INSERT INTO penstock.outcome (job_id, claimed_at, attempt_no, status, worker, error)
  SELECT job_id, claimed_at, attempt_no, 12, worker, :error::jsonb FROM gone
), noted AS (
  INSERT INTO penstock.attempt (job_id, attempt_id, attempt_no, worker, claimed_at, how, detail)
  SELECT job_id, attempt_id, attempt_no, worker, claimed_at, 'cancelled', :error::jsonb FROM gone WHERE attempt_id IS NOT NULL
)
SELECT job_id, group_id, 12::smallint AS status, state, kind, payload, cleanup_kind FROM gone
