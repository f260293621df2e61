-- Jobs that are queued, newest first: of the newest :walked, or of those that find_live found. Index: the primary key of
-- live, then job a row.
-- A page carries no payloads and no results: either may be large, and one job shows them.
SELECT j.job_id, j.kind, j.queue, j.priority, l.status, l.attempt_no, j.max_attempts, j.created_at, j.created_by,
       j.group_id, j.lock_key, j.unique_key, j.retry_of, l.worker, l.claimed_at, l.lease_until, l.wake_at,
       l.deadline, NULL::timestamptz AS finished_at, l.polls, l.progress, NULL::jsonb AS error
FROM (
  SELECT * FROM penstock.live l
  WHERE l.status IN (0, 3) AND (:job_ids::bigint[] IS NULL OR l.job_id = ANY (:job_ids))
  ORDER BY l.job_id DESC
  LIMIT :walked
) l
CROSS JOIN LATERAL (SELECT * FROM penstock.job j WHERE j.job_id = l.job_id LIMIT 1) j
WHERE (:queue::text IS NULL OR l.queue = :queue)
  AND (:group_id::bigint IS NULL OR l.group_id = :group_id)
  AND (:kind::text IS NULL OR j.kind = :kind)
  AND (:created_after::timestamptz IS NULL OR j.created_at >= :created_after)
  AND (:created_before::timestamptz IS NULL OR j.created_at < :created_before)
ORDER BY l.job_id DESC
OFFSET :offset LIMIT :limit
