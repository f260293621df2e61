-- Gives jobs up without ending them: their work goes on elsewhere and any worker may look again when it is due.
-- Invariant: fenced; a parked attempt is over, so its number is given back and its fence is gone.
-- Index: live primary key. Locks: the parked rows.
WITH input AS MATERIALIZED (
  SELECT * FROM unnest(:job_ids::bigint[], :attempt_ids::uuid[], :states::jsonb[], :wake_ins::float8[],
                       :unhandled::boolean[])
    AS t (job_id, attempt_id, state, wake_in, unhandled)
), parked AS (
  UPDATE penstock.live l
  SET status = 2, attempt_id = NULL, worker = NULL, session = NULL, claimed_at = NULL, lease_until = NULL,
      attempt_no = l.attempt_no - 1, polls = l.polls + 1, state = i.state,
      unhandled = CASE WHEN i.unhandled THEN l.unhandled + 1 ELSE 0 END,
      wake_at = least(penstock.now() + make_interval(secs => i.wake_in), l.deadline)
  FROM input i, penstock.live before
  WHERE l.job_id = i.job_id AND l.attempt_id = i.attempt_id AND before.job_id = l.job_id
  RETURNING l.job_id, before.attempt_id, before.attempt_no, before.worker, before.claimed_at, l.queue, l.order_key
), noted AS (
  INSERT INTO penstock.attempt (job_id, attempt_id, attempt_no, worker, claimed_at, how)
  SELECT job_id, attempt_id, attempt_no, worker, claimed_at, 'parked' FROM parked
)
SELECT job_id, attempt_id, queue, order_key FROM parked
