-- How jobs that were announced stand: ready or running, and under which attempt. One that is missing is over, or waits for
-- its time and will be announced again. Index: live primary key. Locks: none.
SELECT job_id, attempt_id, queue, order_key FROM penstock.live
WHERE job_id = ANY (:job_ids::bigint[]) AND status IN (0, 1)
