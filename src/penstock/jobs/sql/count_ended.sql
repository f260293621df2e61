-- How many jobs ended so, counted no further than to a bound. A filter that asks nothing of job spares its look.
SELECT count(*) FROM (
  SELECT FROM penstock.outcome o
  LEFT JOIN penstock.job j USING (job_id)
  WHERE o.status = :status
    AND (:queue::text IS NULL OR j.queue = :queue)
    AND (:group_id::bigint IS NULL OR j.group_id = :group_id)
    AND (:kind::text IS NULL OR j.kind = :kind)
    AND (:created_after::timestamptz IS NULL OR j.created_at >= :created_after)
    AND (:created_before::timestamptz IS NULL OR j.created_at < :created_before)
  LIMIT :most
) AS counted
