-- The newest queued jobs of a queue that few of the newest jobs are in. Those that are ready by themselves: live_ready has
-- them by queue, however many others of it ended. For the rest see find_live.
SELECT job_id FROM (
  (
    SELECT l.job_id
    FROM penstock.live l
    JOIN penstock.job j USING (job_id)
    WHERE l.status = 0
      AND l.queue = :queue AND j.queue = :queue
      AND (:group_id::bigint IS NULL OR l.group_id = :group_id)
      AND (:group_id::bigint IS NULL OR j.group_id = :group_id)
      AND (:kind::text IS NULL OR j.kind = :kind)
      AND (:created_after::timestamptz IS NULL OR j.created_at >= :created_after)
      AND (:created_before::timestamptz IS NULL OR j.created_at < :created_before)
    ORDER BY l.job_id DESC
    LIMIT :offset::bigint + :limit
  )
  UNION ALL
  (
    SELECT l.job_id
    FROM penstock.live l
    JOIN penstock.job j USING (job_id)
    WHERE l.status = 3
      AND l.queue = :queue AND j.queue = :queue
      AND (:group_id::bigint IS NULL OR l.group_id = :group_id)
      AND (:group_id::bigint IS NULL OR j.group_id = :group_id)
      AND (:kind::text IS NULL OR j.kind = :kind)
      AND (:created_after::timestamptz IS NULL OR j.created_at >= :created_after)
      AND (:created_before::timestamptz IS NULL OR j.created_at < :created_before)
    ORDER BY l.job_id DESC
    LIMIT :offset::bigint + :limit
  )
) AS merged
ORDER BY job_id DESC
OFFSET :offset LIMIT :limit
