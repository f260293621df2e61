-- Has a tick whose job was refused tried again after a pause.
UPDATE penstock.schedule SET try_at = penstock.now() + make_interval(secs => :seconds), failures = failures + 1
WHERE name = :name
