-- Locks the rows of these attempts, before a transaction that writes them in more than one statement.
-- Invariant: whoever waits for live rows takes them by job_id, so nobody waits in a circle. Index: live primary key.
SELECT l.job_id
FROM unnest(:job_ids::bigint[], :attempt_ids::uuid[]) AS t (job_id, attempt_id)
JOIN penstock.live l ON l.job_id = t.job_id AND l.attempt_id = t.attempt_id
ORDER BY l.job_id
FOR UPDATE OF l
