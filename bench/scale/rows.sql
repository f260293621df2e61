-- A backlog of `bench.rows` jobs that are not over, in one large queue, some of a few others, and some that run or are
-- parked. A new installation has a few jobs of its own, with the first numbers.
INSERT INTO penstock.job (job_id, lease_s, timeout_s, max_attempts, priority, kind, queue, payload)
SELECT n, 60, 600, 3, 5, CASE WHEN n % 100000 = 0 THEN 'rare' ELSE 'common' END,
       CASE WHEN n % 1000000 = 1 THEN 'small' WHEN n % 5 = 2 THEN 'second' ELSE 'large' END, '{}'
FROM generate_series(1001, current_setting('bench.rows')::int + 1000) n;
INSERT INTO penstock.live (job_id, order_key, queue, status, attempt_id, claimed_at, lease_until, wake_at)
SELECT n, n, CASE WHEN n % 1000000 = 1 THEN 'small' WHEN n % 5 = 2 THEN 'second' ELSE 'large' END, status,
       CASE WHEN status = 1 THEN gen_random_uuid() END,
       CASE WHEN status = 1 THEN now() END,
       CASE WHEN status = 1 THEN now() + interval '1 day' END,
       CASE WHEN status IN (2, 3) THEN now() + interval '1 day' END
FROM generate_series(1001, current_setting('bench.rows')::int + 1000) n,
     LATERAL (SELECT CASE WHEN n % 10000 = 5 THEN 1 WHEN n % 100 = 7 THEN 2 WHEN n % 100 = 8 THEN 3 ELSE 0 END AS status) AS s;
SELECT setval('penstock.job_id', current_setting('bench.rows')::int + 1001);
ANALYZE penstock.job;
ANALYZE penstock.live;
