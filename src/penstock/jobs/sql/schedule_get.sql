SELECT name, cron, zone, enabled, next_at, last_at, last_job, spec FROM penstock.schedule WHERE name = :name
