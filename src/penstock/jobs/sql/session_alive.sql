-- A process that was superseded beats: it is alive, and so is its successor. Index: primary key.
UPDATE penstock.worker_session SET alive_at = penstock.now() WHERE session = :session AND superseded_by IS NOT NULL
