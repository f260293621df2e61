-- Jobs that are over, newest first. Index: outcome_not_succeeded for the rare ends, the primary key of job for the rest.
-- A page carries no payloads and no results: either may be large, and one job shows them.
SELECT j.job_id, j.kind, j.queue, j.priority, o.status AS status, o.attempt_no AS attempt_no, j.max_attempts,
       j.created_at, j.created_by, NULL::jsonb AS payload, j.group_id, j.lock_key, j.unique_key, j.retry_of, o.worker AS worker,
       o.claimed_at AS claimed_at, NULL::timestamptz AS lease_until, NULL::timestamptz AS wake_at, j.deadline_at AS deadline,
       o.finished_at AS finished_at, 0 AS polls, NULL::jsonb AS progress, NULL::jsonb AS result, o.error AS error, j.trace
FROM penstock.outcome o
JOIN penstock.job j USING (job_id)
WHERE o.status = ANY (:statuses::smallint[]) AND (:kind::text IS NULL OR j.kind = :kind)
  AND (:queue::text IS NULL OR j.queue = :queue)
  AND (:group_id::bigint IS NULL OR j.group_id = :group_id)
  AND (:created_after::timestamptz IS NULL OR j.created_at >= :created_after)
  AND (:created_before::timestamptz IS NULL OR j.created_at < :created_before)
ORDER BY j.job_id DESC
OFFSET :offset LIMIT :limit
