-- Locks a live row under its fence for a caller's own transaction: cancel and reaper wait until it is over.
-- Index: live primary key.
SELECT job_id FROM penstock.live WHERE job_id = :job_id AND attempt_id = :attempt_id FOR NO KEY UPDATE
