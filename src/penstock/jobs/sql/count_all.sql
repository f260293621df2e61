-- How many jobs there are, counted no further than to a bound.
SELECT count(*) FROM (
  SELECT FROM penstock.job j
  WHERE (:kind::text IS NULL OR j.kind = :kind)
    AND (:queue::text IS NULL OR j.queue = :queue)
    AND (:group_id::bigint IS NULL OR j.group_id = :group_id)
    AND (:created_after::timestamptz IS NULL OR j.created_at >= :created_after)
    AND (:created_before::timestamptz IS NULL OR j.created_at < :created_before)
  LIMIT :most
) AS counted
