-- Locks the live rows of these jobs, before a transaction that ends several of them.
-- Invariant: whoever waits for live rows takes them by job_id. Index: live primary key.
SELECT job_id, group_id FROM penstock.live WHERE job_id = ANY (:job_ids::bigint[]) ORDER BY job_id FOR UPDATE
