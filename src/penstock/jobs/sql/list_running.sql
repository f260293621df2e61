-- Jobs that run, newest first. Index: live_running, all of it, for few run at a time among many that wait; then live
-- and job a row. MATERIALIZED: else statistics of a busier hour have all live rows read backwards.
-- A page carries no payloads and no results: either may be large, and one job shows them.
WITH running AS MATERIALIZED (
  SELECT job_id FROM penstock.live WHERE status = 1
)
SELECT j.job_id, j.kind, j.queue, j.priority, l.status, l.attempt_no, j.max_attempts, j.created_at, j.created_by,
       j.group_id, j.lock_key, j.unique_key, j.retry_of, l.worker, l.claimed_at, l.lease_until, l.wake_at,
       l.deadline, NULL::timestamptz AS finished_at, l.polls, l.progress, NULL::jsonb AS error
FROM (SELECT job_id FROM running ORDER BY job_id DESC) r
CROSS JOIN LATERAL (SELECT * FROM penstock.live l WHERE l.job_id = r.job_id LIMIT 1) l
CROSS JOIN LATERAL (SELECT * FROM penstock.job j WHERE j.job_id = r.job_id LIMIT 1) j
WHERE l.status = 1
  AND (:queue::text IS NULL OR l.queue = :queue)
  AND (:group_id::bigint IS NULL OR l.group_id = :group_id)
  AND (:kind::text IS NULL OR j.kind = :kind)
  AND (:created_after::timestamptz IS NULL OR j.created_at >= :created_after)
  AND (:created_before::timestamptz IS NULL OR j.created_at < :created_before)
ORDER BY r.job_id DESC
OFFSET :offset LIMIT :limit
