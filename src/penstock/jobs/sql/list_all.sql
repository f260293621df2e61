-- Jobs of any status, newest first: of the newest :walked, or of those that find_all found. Index: the primary key of
-- job; then live and outcome_job a row.
-- Each job is looked up by itself (LATERAL … LIMIT 1): a join could be planned as a scan of all that is live.
-- A page carries no payloads and no results: either may be large, and one job shows them.
SELECT j.job_id, j.kind, j.queue, j.priority, coalesce(l.status, o.status) AS status,
       coalesce(l.attempt_no, o.attempt_no) AS attempt_no, j.max_attempts, j.created_at, j.created_by,
       j.group_id, j.lock_key, j.unique_key, j.retry_of, coalesce(l.worker, o.worker) AS worker,
       coalesce(l.claimed_at, o.claimed_at) AS claimed_at, l.lease_until, l.wake_at,
       coalesce(l.deadline, j.deadline_at) AS deadline, o.finished_at, coalesce(l.polls, 0) AS polls,
       l.progress, o.error
FROM (
  SELECT * FROM (
    SELECT * FROM penstock.job
    WHERE :job_ids::bigint[] IS NULL OR job_id = ANY (:job_ids)
    ORDER BY job_id DESC
    LIMIT :walked
  ) newest
  WHERE (:kind::text IS NULL OR kind = :kind)
    AND (:queue::text IS NULL OR queue = :queue)
    AND (:group_id::bigint IS NULL OR group_id = :group_id)
    AND (:created_after::timestamptz IS NULL OR created_at >= :created_after)
    AND (:created_before::timestamptz IS NULL OR created_at < :created_before)
  ORDER BY job_id DESC
  OFFSET :offset LIMIT :limit
) j
LEFT JOIN LATERAL (SELECT * FROM penstock.live l WHERE l.job_id = j.job_id LIMIT 1) l ON true
LEFT JOIN LATERAL (SELECT * FROM penstock.outcome o WHERE o.job_id = j.job_id LIMIT 1) o ON true
ORDER BY j.job_id DESC
