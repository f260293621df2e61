-- Ends the members of groups that failed: those that wait, and with :running those that run as well.
-- Locks: SKIP LOCKED, so that it never waits while it holds a group's row; what it skips, the next pass takes.
-- Index: live_group.
WITH doomed AS MATERIALIZED (
  SELECT job_id FROM penstock.live
  WHERE group_id = ANY (:group_ids::bigint[]) AND (status <> 1 OR :running)
  FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM penstock.live l USING doomed d, penstock.job j
  WHERE l.job_id = d.job_id AND j.job_id = d.job_id
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
