-- Schedules whose tick has come. Index: schedule_due. Locks: SKIP LOCKED, so that two schedulers share the work.
SELECT name, cron, zone, next_at, spec, penstock.now() AS now FROM penstock.schedule
WHERE enabled AND next_at <= penstock.now()
ORDER BY next_at LIMIT :limit
FOR UPDATE SKIP LOCKED
