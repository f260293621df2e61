-- Adds or replaces a schedule; its next tick counts from now.
INSERT INTO penstock.schedule (name, cron, zone, enabled, next_at, spec)
VALUES (:name, :cron, :zone, :enabled, :next_at, :spec)
ON CONFLICT (name) DO UPDATE
SET cron = excluded.cron, zone = excluded.zone, enabled = excluded.enabled, next_at = excluded.next_at, spec = excluded.spec,
    try_at = NULL, failures = 0
