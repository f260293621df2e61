-- How each queue stands, counted no further than to a bound; what is cut there says so.
-- Index: live_ready, queue after queue, for what is ready; live_running and live_due for the rest.
WITH RECURSIVE with_ready AS (
  (SELECT queue FROM penstock.live WHERE status = 0 ORDER BY queue LIMIT 1)
  UNION ALL
  SELECT (SELECT l.queue FROM penstock.live l WHERE l.status = 0 AND l.queue > w.queue ORDER BY l.queue LIMIT 1)
  FROM with_ready w WHERE w.queue IS NOT NULL
), ready AS (
  SELECT w.queue, counted.rows, head.oldest_wait
  FROM with_ready w
  CROSS JOIN LATERAL (
    SELECT count(*) AS rows
    FROM (SELECT FROM penstock.live l WHERE l.queue = w.queue AND l.status = 0 LIMIT :queue_bound) AS first
  ) counted
  CROSS JOIN LATERAL (
    SELECT date_part('epoch', penstock.now() - j.created_at) AS oldest_wait
    FROM penstock.live l JOIN penstock.job j USING (job_id)
    WHERE l.queue = w.queue AND l.status = 0 ORDER BY l.order_key LIMIT 1
  ) head
  WHERE w.queue IS NOT NULL
), running AS MATERIALIZED (
  SELECT queue FROM penstock.live WHERE status = 1 LIMIT :others_bound
), waiting AS MATERIALIZED (
  SELECT queue, status FROM penstock.live WHERE status IN (2, 3) LIMIT :others_bound
), cut AS (
  SELECT (SELECT count(*) FROM running) >= :others_bound AS running_cut,
         (SELECT count(*) FROM waiting) >= :others_bound AS waiting_cut
), counted AS (
  SELECT queue, rows AS ready, 0::bigint AS running, 0::bigint AS parked, 0::bigint AS scheduled, oldest_wait FROM ready
  UNION ALL
  SELECT queue, 0, count(*), 0, 0, NULL FROM running GROUP BY queue
  UNION ALL
  SELECT queue, 0, 0, count(*) FILTER (WHERE status = 2), count(*) FILTER (WHERE status = 3), NULL
  FROM waiting GROUP BY queue
)
SELECT queue, sum(ready)::bigint AS ready, sum(running)::bigint AS running, sum(parked)::bigint AS parked,
       sum(scheduled)::bigint AS scheduled, max(oldest_wait) AS oldest_wait, running_cut, waiting_cut
FROM counted CROSS JOIN cut
GROUP BY queue, running_cut, waiting_cut
ORDER BY queue
