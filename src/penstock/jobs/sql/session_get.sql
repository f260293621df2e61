-- Whether a session registered before, and whether it is over. Index: primary key.
SELECT worker, ended_at, superseded_by FROM penstock.worker_session WHERE session = :session
