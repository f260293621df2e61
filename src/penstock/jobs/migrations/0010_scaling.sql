-- What an autoscaler reads: how much work each queue has, in one view and nothing else of the schema.

CREATE INDEX live_parked_by_queue ON penstock.live (queue, wake_at) WHERE status = 2;

-- A count ends at 10,000 for each queue, for no deployment scales further on it. What runs is bounded by the slots of the
-- workers, and is counted in full: one that runs must not be missed, or its worker would be taken away. Jobs that are due
-- count as ready: claims make them ready, and with no workers there are none.
-- Index: live_ready and live_parked_by_queue, queue after queue; live_running; live_due.
CREATE VIEW penstock.scaling WITH (security_barrier) AS
WITH RECURSIVE with_ready AS (
  (SELECT queue FROM penstock.live WHERE status = 0 ORDER BY queue LIMIT 1)
  UNION ALL
  SELECT (SELECT l.queue FROM penstock.live l WHERE l.status = 0 AND l.queue > w.queue ORDER BY l.queue LIMIT 1)
  FROM with_ready w WHERE w.queue IS NOT NULL
), with_parked AS (
  (SELECT queue FROM penstock.live WHERE status = 2 ORDER BY queue LIMIT 1)
  UNION ALL
  SELECT (SELECT l.queue FROM penstock.live l WHERE l.status = 2 AND l.queue > w.queue ORDER BY l.queue LIMIT 1)
  FROM with_parked w WHERE w.queue IS NOT NULL
), counted AS (
  SELECT w.queue, ready.rows AS ready, 0::bigint AS running, 0::bigint AS parked, head.wait
  FROM with_ready w
  CROSS JOIN LATERAL (
    SELECT count(*) AS rows
    FROM (SELECT FROM penstock.live l WHERE l.queue = w.queue AND l.status = 0 LIMIT 10000) AS first
  ) ready
  CROSS JOIN LATERAL (
    SELECT date_part('epoch', penstock.now() - j.created_at) AS wait
    FROM penstock.live l JOIN penstock.job j USING (job_id)
    WHERE l.queue = w.queue AND l.status = 0 ORDER BY l.order_key LIMIT 1
  ) head
  WHERE w.queue IS NOT NULL
  UNION ALL
  SELECT queue, count(*), 0, 0, max(date_part('epoch', penstock.now() - wake_at))
  FROM (
    SELECT queue, status, wake_at FROM penstock.live
    WHERE status IN (2, 3) AND wake_at <= penstock.now() ORDER BY wake_at LIMIT 10000
  ) AS due
  WHERE status = 3
  GROUP BY queue
  UNION ALL
  SELECT queue, 0, count(*), 0, 0 FROM penstock.live WHERE status = 1 GROUP BY queue
  UNION ALL
  SELECT w.queue, due.rows, 0, parked.rows - due.rows, coalesce(due.wait, 0)
  FROM with_parked w
  CROSS JOIN LATERAL (
    SELECT count(*) AS rows
    FROM (SELECT FROM penstock.live l WHERE l.queue = w.queue AND l.status = 2 LIMIT 10000) AS first
  ) parked
  CROSS JOIN LATERAL (
    SELECT count(*) AS rows, max(date_part('epoch', penstock.now() - wake_at)) AS wait
    FROM (
      SELECT wake_at FROM penstock.live l
      WHERE l.queue = w.queue AND l.status = 2 AND wake_at <= penstock.now() ORDER BY wake_at LIMIT 10000
    ) AS first
  ) due
  WHERE w.queue IS NOT NULL
)
SELECT queue, sum(ready)::bigint AS ready, sum(running)::bigint AS running, sum(parked)::bigint AS parked,
       sum(ready + running + parked)::bigint AS unfinished, greatest(max(wait), 0) AS oldest_wait_seconds
FROM counted
GROUP BY queue;
COMMENT ON VIEW penstock.scaling IS
  'For autoscalers: the work of each queue. A queue without work has no row. `penstock migrate --scaling-role` grants it.';
