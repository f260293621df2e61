-- Takes lapsed attempts off their workers: back to the queue, or failed when attempts or time are used up.
-- A job's time is used up when the clock says so: its own deadline has passed, or its worker was heard of after the
-- attempt's (overdue). Every other lapse is a worker that vanished; without :vanished these are left alone.
-- What the lost attempt said of its progress goes with it: the next one begins anew.
-- Invariant: the lease is checked again under the row's lock, so a renewal in flight wins. Nothing else is touched.
-- Index: live_running (lease order). Locks: the reaped rows, SKIP LOCKED: any number of reapers.
WITH lapsed AS MATERIALIZED (
  SELECT l.job_id, l.attempt_id, l.attempt_no, l.worker, l.claimed_at, l.overdue
  FROM penstock.live l
  WHERE l.status = 1 AND l.lease_until <= penstock.now()
    AND (:vanished OR l.overdue OR (SELECT j.deadline_at <= penstock.now() FROM penstock.job j WHERE j.job_id = l.job_id))
  ORDER BY l.lease_until
  LIMIT :limit
  FOR UPDATE SKIP LOCKED
), judged AS MATERIALIZED (
  SELECT p.*, j.kind, j.payload, j.cleanup_kind, j.deadline_at, t.used_up, t.used_up OR p.attempt_no >= j.max_attempts AS over
  FROM lapsed p JOIN penstock.job j ON j.job_id = p.job_id
  CROSS JOIN LATERAL (SELECT p.overdue OR coalesce(j.deadline_at <= penstock.now(), false) AS used_up) t
), requeued AS (
  UPDATE penstock.live l
  SET status = 0, attempt_id = NULL, worker = NULL, session = NULL, claimed_at = NULL, lease_until = NULL,
      progress = NULL, deadline = p.deadline_at
  FROM judged p WHERE l.job_id = p.job_id AND NOT p.over
  RETURNING l.job_id, l.queue, l.order_key, p.kind
), gone AS (
  DELETE FROM penstock.live l USING judged p WHERE l.job_id = p.job_id AND p.over
  RETURNING l.job_id, l.group_id, l.state, p.kind, p.payload, p.cleanup_kind, p.attempt_id, p.attempt_no, p.worker,
            p.claimed_at, jsonb_build_object('code', CASE WHEN p.used_up THEN 'DEADLINE_EXCEEDED' ELSE 'ATTEMPTS_USED_UP' END,
              'message', CASE WHEN p.used_up THEN 'The job ran past its deadline.'
                         ELSE format('Its worker vanished %s times; no attempt is left.', p.attempt_no) END) AS error
), ended AS (
  INSERT INTO penstock.outcome (job_id, claimed_at, attempt_no, status, worker, error)
  SELECT job_id, claimed_at, attempt_no, 11, worker, error FROM gone
), noted AS (
  INSERT INTO penstock.attempt (job_id, attempt_id, attempt_no, worker, claimed_at, how)
  SELECT job_id, attempt_id, attempt_no, worker, claimed_at, 'lapsed' FROM judged
), announced AS (
  INSERT INTO penstock.outbox (job_id, order_key, queue)
  SELECT job_id, order_key, queue FROM requeued WHERE :announce
)
SELECT job_id, queue, order_key, NULL::smallint AS status, NULL::bigint AS group_id, NULL::jsonb AS state,
       kind, NULL::jsonb AS payload, NULL AS cleanup_kind FROM requeued
UNION ALL
SELECT job_id, NULL, NULL, 11::smallint, group_id, state, kind, payload, cleanup_kind FROM gone
