-- Of a stream: the jobs that are ready or run, counted to a bound, and the announcements that it has not taken yet.
-- Index: live_ready and live_running through the status; the outbox is short. Locks: none.
SELECT (SELECT count(*) FROM (
          SELECT FROM penstock.live
          WHERE status = 0 AND (queue = ANY (:stage_queues::text[])) = :staged
          LIMIT :most) AS ready)
     + (SELECT count(*) FROM (
          SELECT FROM penstock.live
          WHERE status = 1 AND (queue = ANY (:stage_queues::text[])) = :staged
          LIMIT :most) AS running) AS jobs,
       (SELECT count(*) FROM (
          SELECT FROM penstock.outbox
          WHERE (queue = ANY (:stage_queues::text[])) = :staged
          LIMIT :most) AS waiting) AS waiting
