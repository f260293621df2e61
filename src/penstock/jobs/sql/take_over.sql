-- Takes the attempts of superseded sessions off their jobs, whatever is left of their leases: back to the queue, or
-- failed when attempts or time are used up. Otherwise as reap.sql.
-- The name is compared as well: a control plane of an older release claims without touching the session.
-- Invariant: the fence goes with the attempt, so a process that is superseded and still alive writes nothing any more.
-- Index: live_running (all running rows: a registration is rare, and an index by session would cost every claim).
-- Locks: waits for a write in flight; rows are taken by job_id.
WITH taken AS MATERIALIZED (
  SELECT l.job_id, l.attempt_id, l.attempt_no, l.worker, l.claimed_at, l.overdue
  FROM penstock.live l
  WHERE l.status = 1 AND l.session = ANY (:sessions::uuid[]) AND l.worker = :worker
  ORDER BY l.job_id
  FOR UPDATE
), judged AS MATERIALIZED (
  SELECT t.*, j.kind, j.payload, j.cleanup_kind, j.deadline_at, u.used_up, u.used_up OR t.attempt_no >= j.max_attempts AS over
  FROM taken t JOIN penstock.job j ON j.job_id = t.job_id
  CROSS JOIN LATERAL (SELECT t.overdue OR coalesce(j.deadline_at <= penstock.now(), false) AS used_up) u
), requeued AS (
  UPDATE penstock.live l
  SET status = 0, attempt_id = NULL, worker = NULL, session = NULL, claimed_at = NULL, lease_until = NULL,
      progress = NULL, deadline = t.deadline_at
  FROM judged t WHERE l.job_id = t.job_id AND NOT t.over
  RETURNING l.job_id, l.queue, l.order_key, t.kind
), gone AS (
  DELETE FROM penstock.live l USING judged t WHERE l.job_id = t.job_id AND t.over
  RETURNING l.job_id, l.group_id, l.state, t.kind, t.payload, t.cleanup_kind, t.attempt_no, t.worker, t.claimed_at,
            jsonb_build_object('code', CASE WHEN t.used_up THEN 'DEADLINE_EXCEEDED' ELSE 'ATTEMPTS_USED_UP' END,
              'message', CASE WHEN t.used_up THEN 'The job ran past its deadline.'
                         ELSE format('Its worker vanished %s times; no attempt is left.', t.attempt_no) END) AS error
), ended AS (
  INSERT INTO penstock.outcome (job_id, claimed_at, attempt_no, status, worker, error)
  SELECT job_id, claimed_at, attempt_no, 11, worker, error FROM gone
), noted AS (
  INSERT INTO penstock.attempt (job_id, attempt_id, attempt_no, worker, claimed_at, how, detail)
  SELECT job_id, attempt_id, attempt_no, worker, claimed_at, 'lapsed',
         jsonb_build_object('reason', 'Another process started under the name of its worker.') FROM judged
), announced AS (
  INSERT INTO penstock.outbox (job_id, order_key, queue)
  SELECT job_id, order_key, queue FROM requeued WHERE :announce
)
SELECT job_id, queue, order_key, NULL::smallint AS status, NULL::bigint AS group_id, NULL::jsonb AS state,
       kind, NULL::jsonb AS payload, NULL AS cleanup_kind FROM requeued
UNION ALL
SELECT job_id, NULL, NULL, 11::smallint, group_id, state, kind, payload, cleanup_kind FROM gone
