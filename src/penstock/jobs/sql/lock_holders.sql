-- Who holds these locks, once whoever is ending a holder is through; those that are returned stay until the caller's
-- transaction ends. Index: live_lock. Locks: the holders, shared, by job_id.
SELECT l.lock_key, l.job_id, j.kind, l.status, l.worker, j.created_by, j.created_at
FROM penstock.live l JOIN penstock.job j USING (job_id)
WHERE l.lock_key = ANY (:lock_keys::text[])
ORDER BY l.job_id
FOR KEY SHARE OF l
