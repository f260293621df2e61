-- A worker leaves in order: its name is free, and its session claims no more. Index: primary key.
UPDATE penstock.worker_session SET ended_at = penstock.now() WHERE session = :session AND ended_at IS NULL
