-- The newest jobs of these statuses and this filter, where the newest of all have too few. Index: job_where or
-- job_by_group of job, then live a row; or live_group, live_parked or the primary key of live backwards, then job a row.
SELECT l.job_id
FROM penstock.live l
JOIN penstock.job j USING (job_id)
WHERE l.status = ANY (:statuses::smallint[])
  AND (:group_id::bigint IS NULL OR l.group_id = :group_id)
  AND (:queue::text IS NULL OR j.queue = :queue)
  AND (:group_id::bigint IS NULL OR j.group_id = :group_id)
  AND (:kind::text IS NULL OR j.kind = :kind)
  AND (:created_after::timestamptz IS NULL OR j.created_at >= :created_after)
  AND (:created_before::timestamptz IS NULL OR j.created_at < :created_before)
ORDER BY l.job_id DESC
OFFSET :offset LIMIT :limit
