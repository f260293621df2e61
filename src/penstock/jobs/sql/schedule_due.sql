-- The schedule whose tick is due the longest. Index: schedule_due.
-- Locks: SKIP LOCKED, so that two schedulers share the work.
SELECT name, cron, zone, next_at, spec, failures, penstock.now() AS now FROM penstock.schedule
WHERE enabled AND coalesce(try_at, next_at) <= penstock.now()
ORDER BY coalesce(try_at, next_at) LIMIT 1
FOR UPDATE SKIP LOCKED
