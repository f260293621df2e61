-- Whether a process of this name that was superseded has been alive lately: then two live processes share the name.
-- Index: worker_session_worker.
SELECT EXISTS (SELECT FROM penstock.worker_session
               WHERE worker = :worker AND alive_at > penstock.now() - make_interval(secs => :seconds))
