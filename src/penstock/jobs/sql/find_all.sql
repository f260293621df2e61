-- The newest jobs of this filter, where the newest of all have too few. Index: job_where for a queue or kind that few
-- have, job_by_group, or the primary key backwards.
SELECT j.job_id
FROM penstock.job j
WHERE true
  AND (:queue::text IS NULL OR j.queue = :queue)
  AND (:group_id::bigint IS NULL OR j.group_id = :group_id)
  AND (:kind::text IS NULL OR j.kind = :kind)
  AND (:created_after::timestamptz IS NULL OR j.created_at >= :created_after)
  AND (:created_before::timestamptz IS NULL OR j.created_at < :created_before)
ORDER BY j.job_id DESC
OFFSET :offset LIMIT :limit
