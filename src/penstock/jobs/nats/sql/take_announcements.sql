-- Takes the oldest announcements of a stream out of the outbox; the caller commits when the stream has them.
-- A job that is no longer ready or running needs none: its announcement is dropped (order_key NULL).
-- Invariant: two relays never take the same row. Index: the primary keys. Locks: the rows taken, SKIP LOCKED.
-- :staged says which of the two streams: the one of the queues :stage_queues, or the one of all others.
WITH taken AS MATERIALIZED (
  SELECT outbox_id FROM penstock.outbox
  WHERE (queue = ANY (:stage_queues::text[])) = :staged
  ORDER BY outbox_id
  LIMIT :limit
  FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM penstock.outbox o USING taken t WHERE o.outbox_id = t.outbox_id
  RETURNING o.outbox_id, o.message_id, o.job_id, o.order_key, o.queue
)
SELECT g.job_id, g.message_id, g.queue, CASE WHEN l.status IN (0, 1) THEN g.order_key END AS order_key
FROM gone g LEFT JOIN penstock.live l ON l.job_id = g.job_id
ORDER BY g.outbox_id
