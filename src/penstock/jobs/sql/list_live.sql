-- Jobs that are not over, newest first. Index: the primary keys of live and job.
-- A page carries no payloads and no results: either may be large, and one job shows them.
SELECT j.job_id, j.kind, j.queue, j.priority, l.status AS status, l.attempt_no AS attempt_no, j.max_attempts,
       j.created_at, j.created_by, NULL::jsonb AS payload, j.group_id, j.lock_key, j.unique_key, j.retry_of, l.worker AS worker,
       l.claimed_at AS claimed_at, l.lease_until AS lease_until, l.wake_at AS wake_at, l.deadline AS deadline,
       NULL::timestamptz AS finished_at, l.polls AS polls, l.progress AS progress, NULL::jsonb AS result, NULL::jsonb AS error, j.trace
FROM penstock.live l
JOIN penstock.job j USING (job_id)
WHERE l.status = ANY (:statuses::smallint[]) AND (:kind::text IS NULL OR j.kind = :kind)
  AND (:queue::text IS NULL OR j.queue = :queue)
  AND (:group_id::bigint IS NULL OR j.group_id = :group_id)
  AND (:created_after::timestamptz IS NULL OR j.created_at >= :created_after)
  AND (:created_before::timestamptz IS NULL OR j.created_at < :created_before)
ORDER BY j.job_id DESC
OFFSET :offset LIMIT :limit
