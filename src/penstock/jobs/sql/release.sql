-- Hands jobs back to the queue, in their old place; the attempt is not counted.
-- Invariant: fenced; attempt numbers are for people and policy, so giving one back cannot let a zombie in.
-- Index: live primary key. Locks: the released rows.
WITH input AS MATERIALIZED (
  SELECT * FROM unnest(:job_ids::bigint[], :attempt_ids::uuid[], :reasons::text[]) AS t (job_id, attempt_id, reason)
), released AS (
  UPDATE penstock.live l
  SET status = 0, attempt_id = NULL, worker = NULL, session = NULL, claimed_at = NULL, lease_until = NULL,
      attempt_no = l.attempt_no - 1, deadline = j.deadline_at
  FROM input i, penstock.live before, penstock.job j
  WHERE l.job_id = i.job_id AND l.attempt_id = i.attempt_id AND before.job_id = l.job_id AND j.job_id = l.job_id
  RETURNING l.job_id, before.attempt_id, before.attempt_no, before.worker, before.claimed_at, l.queue, l.order_key, i.reason
), noted AS (
  INSERT INTO penstock.attempt (job_id, attempt_id, attempt_no, worker, claimed_at, how, detail)
  SELECT job_id, attempt_id, attempt_no, worker, claimed_at, 'released', jsonb_build_object('reason', reason) FROM released
), announced AS (
  INSERT INTO penstock.outbox (job_id, order_key, queue)
  SELECT job_id, order_key, queue FROM released WHERE :announce
)
SELECT job_id, attempt_id, queue, order_key FROM released
