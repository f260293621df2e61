-- Waits for whoever is ending a holder of these locks, before the caller locks a group: everybody takes live rows first
-- and groups second, so nobody waits in a circle. Index: live_lock. Locks: the holders that stay, shared.
SELECT job_id FROM penstock.live WHERE lock_key = ANY (:lock_keys::text[]) ORDER BY job_id FOR KEY SHARE
