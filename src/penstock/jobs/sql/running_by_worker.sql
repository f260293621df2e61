-- How many jobs each worker holds. Index: live_running.
SELECT worker, count(*) AS running FROM penstock.live WHERE status = 1 AND worker IS NOT NULL GROUP BY worker
