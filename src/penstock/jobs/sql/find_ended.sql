-- The newest jobs that ended so and pass this filter, where the newest of all have too few. Index: outcome_not_succeeded
-- or outcome_job backwards, then job a row; or job_where or job_by_group of job, then outcome_job a row.
SELECT o.job_id
FROM penstock.outcome o
JOIN penstock.job j USING (job_id)
WHERE o.status = :status
  AND (:queue::text IS NULL OR j.queue = :queue)
  AND (:group_id::bigint IS NULL OR j.group_id = :group_id)
  AND (:kind::text IS NULL OR j.kind = :kind)
  AND (:created_after::timestamptz IS NULL OR j.created_at >= :created_after)
  AND (:created_before::timestamptz IS NULL OR j.created_at < :created_before)
ORDER BY o.job_id DESC
OFFSET :offset LIMIT :limit
