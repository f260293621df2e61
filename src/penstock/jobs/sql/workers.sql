-- Workers seen in the last :seconds, the freshest first.
SELECT name, started_at, seen_at, running, slots, queues, version,
       date_part('epoch', penstock.now() - seen_at) AS seconds_ago
FROM penstock.worker
WHERE seen_at > penstock.now() - make_interval(secs => :seconds)
ORDER BY seen_at DESC, name
