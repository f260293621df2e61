-- The sessions of a name that are over and were not heard of since; :session, which registers now, may spare the one that
-- it superseded. A statement of its own: it must see what others ended while session_supersede waited for them.
-- Index: worker_session_worker.
SELECT session FROM penstock.worker_session
WHERE worker = :worker AND ended_at IS NOT NULL AND alive_at IS NULL
  AND (NOT :sparing OR superseded_by IS DISTINCT FROM :session)
