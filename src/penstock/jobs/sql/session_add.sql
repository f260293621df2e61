-- A process registers as the current one of its name; the index refuses a second one.
INSERT INTO penstock.worker_session (session, worker) VALUES (:session, :worker)
