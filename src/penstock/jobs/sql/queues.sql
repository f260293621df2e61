-- How each queue stands. Index: live_ready per queue for the oldest; the counts read the live table, which is small.
SELECT l.queue,
       count(*) FILTER (WHERE l.status = 0) AS ready,
       count(*) FILTER (WHERE l.status = 1) AS running,
       count(*) FILTER (WHERE l.status = 2) AS parked,
       count(*) FILTER (WHERE l.status = 3) AS scheduled,
       (SELECT date_part('epoch', penstock.now() - j.created_at)
        FROM penstock.live h JOIN penstock.job j USING (job_id)
        WHERE h.queue = l.queue AND h.status = 0 ORDER BY h.order_key LIMIT 1) AS oldest_wait
FROM penstock.live l
GROUP BY l.queue
ORDER BY l.queue
