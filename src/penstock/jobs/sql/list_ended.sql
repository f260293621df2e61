-- Jobs that are over, newest first: of the newest :walked, or of those that find_ended found. Index:
-- outcome_not_succeeded for the rare ends, outcome_job for the rest, each backwards; then job a row.
-- A page carries no payloads and no results: either may be large, and one job shows them.
SELECT j.job_id, j.kind, j.queue, j.priority, o.status, o.attempt_no, j.max_attempts, j.created_at, j.created_by,
       j.group_id, j.lock_key, j.unique_key, j.retry_of, o.worker, o.claimed_at, NULL::timestamptz AS lease_until,
       NULL::timestamptz AS wake_at, j.deadline_at AS deadline, o.finished_at, 0 AS polls, NULL::jsonb AS progress,
       o.error
FROM (
  SELECT * FROM penstock.outcome o
  WHERE o.status = :status AND (:job_ids::bigint[] IS NULL OR o.job_id = ANY (:job_ids))
  ORDER BY o.job_id DESC
  LIMIT :walked
) o
CROSS JOIN LATERAL (SELECT * FROM penstock.job j WHERE j.job_id = o.job_id LIMIT 1) j
WHERE (:queue::text IS NULL OR j.queue = :queue)
  AND (:group_id::bigint IS NULL OR j.group_id = :group_id)
  AND (:kind::text IS NULL OR j.kind = :kind)
  AND (:created_after::timestamptz IS NULL OR j.created_at >= :created_after)
  AND (:created_before::timestamptz IS NULL OR j.created_at < :created_before)
ORDER BY o.job_id DESC
OFFSET :offset LIMIT :limit
