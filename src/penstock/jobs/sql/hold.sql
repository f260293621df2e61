-- Locks the rows of these attempts and the holders of these locks, before a transaction that writes them in more than one
-- statement. Run after lock_keys. Invariant: whoever waits for live rows takes them by job_id, so nobody waits in a circle.
-- Index: live primary key, live_lock.
WITH wanted AS MATERIALIZED (
  SELECT l.job_id
  FROM unnest(:job_ids::bigint[], :attempt_ids::uuid[]) AS t (job_id, attempt_id)
  JOIN penstock.live l ON l.job_id = t.job_id AND l.attempt_id = t.attempt_id
  UNION
  SELECT job_id FROM penstock.live WHERE lock_key = ANY (:lock_keys::text[])
)
SELECT l.job_id
FROM wanted JOIN penstock.live l ON l.job_id = wanted.job_id
ORDER BY l.job_id
FOR UPDATE OF l
