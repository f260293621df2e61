-- Who holds these locks. Index: live_lock.
SELECT l.lock_key, l.job_id, j.kind, l.status, l.worker, j.created_by, j.created_at
FROM penstock.live l JOIN penstock.job j USING (job_id)
WHERE l.lock_key = ANY (:lock_keys::text[])
