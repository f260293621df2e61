-- Extends the leases of the attempts that still hold their jobs; never past a job's deadline. An attempt whose own time is
-- over is marked and its lease ends now: its worker is alive, so the reaper need not take it for one that vanished.
-- Invariant: only the holder of the fence extends. A row that is being ended at this moment is skipped, not waited for,
-- and is not reported as lost; nor is an attempt that ended by its own hand.
-- Index: live primary key; for those that are gone outcome_job, attempt_job. Locks: the renewed rows.
WITH held AS MATERIALIZED (
  SELECT * FROM unnest(:job_ids::bigint[], :attempt_ids::uuid[]) AS t (job_id, attempt_id)
), mine AS MATERIALIZED (
  SELECT l.job_id FROM held h
  JOIN penstock.live l ON l.job_id = h.job_id AND l.attempt_id = h.attempt_id
  FOR NO KEY UPDATE OF l SKIP LOCKED
), renewed AS (
  UPDATE penstock.live l
  SET lease_until = CASE WHEN l.deadline <= penstock.now() THEN penstock.now()
                         ELSE least(penstock.now() + make_interval(secs => j.lease_s), j.deadline_at) END,
      overdue = coalesce(l.deadline <= penstock.now(), false)
  FROM mine m JOIN penstock.job j ON j.job_id = m.job_id
  WHERE l.job_id = m.job_id
)
SELECT h.job_id, h.attempt_id, coalesce(o.status = 12, false) AS cancelled
FROM held h
LEFT JOIN LATERAL (
  SELECT o.status, o.attempt_id FROM penstock.outcome o WHERE o.job_id = h.job_id LIMIT 1
) o ON true
WHERE NOT EXISTS (SELECT FROM penstock.live l WHERE l.job_id = h.job_id AND l.attempt_id = h.attempt_id)
  AND o.attempt_id IS DISTINCT FROM h.attempt_id
  AND NOT EXISTS (SELECT FROM penstock.attempt a WHERE a.job_id = h.job_id AND a.attempt_id = h.attempt_id
                  AND a.how IN ('parked', 'released', 'retried'))
