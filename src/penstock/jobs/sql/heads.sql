-- The oldest ready key of each queue, so that a claim over several queues begins where the work is most due.
-- Index: live_ready. Locks: none.
SELECT q.queue, head.order_key
FROM unnest(:queues::text[]) AS q (queue)
CROSS JOIN LATERAL (
  SELECT l.order_key FROM penstock.live l
  WHERE l.queue = q.queue AND l.status = 0
  ORDER BY l.order_key LIMIT 1
) head
ORDER BY head.order_key
