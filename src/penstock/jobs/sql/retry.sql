-- Sends failed attempts back to try again after a pause, as long as the job has attempts left.
-- Invariant: fenced; attempts never exceed max_attempts. Index: live primary key. Locks: the retried rows.
WITH input AS MATERIALIZED (
  SELECT * FROM unnest(:job_ids::bigint[], :attempt_ids::uuid[], :errors::jsonb[], :retry_ins::float8[])
    AS t (job_id, attempt_id, error, retry_in)
), retried AS (
  UPDATE penstock.live l
  SET status = 3, attempt_id = NULL, worker = NULL, session = NULL, claimed_at = NULL, lease_until = NULL, deadline = j.deadline_at,
      wake_at = penstock.now() + make_interval(secs => i.retry_in)
  FROM input i, penstock.live before, penstock.job j
  WHERE l.job_id = i.job_id AND l.attempt_id = i.attempt_id AND before.job_id = l.job_id AND j.job_id = l.job_id
    AND l.attempt_no < j.max_attempts
  RETURNING l.job_id, before.attempt_id, before.attempt_no, before.worker, before.claimed_at, i.error
), noted AS (
  INSERT INTO penstock.attempt (job_id, attempt_id, attempt_no, worker, claimed_at, how, detail)
  SELECT job_id, attempt_id, attempt_no, worker, claimed_at, 'retried', error FROM retried
)
SELECT job_id, attempt_id FROM retried
