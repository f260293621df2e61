-- Announces jobs that are ready or run once more, the most urgent first: their messages were lost with a stream, or given up.
-- Each row gets a message id of its own. Index: live_ready, live_running through the status. Locks: none.
INSERT INTO penstock.outbox (job_id, order_key, queue)
SELECT job_id, order_key, queue FROM penstock.live
WHERE status IN (0, 1) AND (queue = ANY (:stage_queues::text[])) = :staged
ORDER BY status DESC, order_key
LIMIT :limit
