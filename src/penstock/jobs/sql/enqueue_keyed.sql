-- As enqueue.sql, for jobs with a unique key (a second one is not added) or a lock key (the index refuses a second holder).
-- Invariant: one job per unique key, at most one live row per lock key. The caller holds a savepoint for the refusal.
-- Index: job_unique_key, live_lock. Locks: waits for another transaction that adds the same key. All unique keys are
-- taken before all lock keys, each kind in its order: batches that share several do not wait in a circle.
WITH input AS MATERIALIZED (
  SELECT nextval('penstock.job_id') AS job_id, t.*
  FROM unnest(:payloads::jsonb[], :created_bys::text[], :traces::text[], :unique_keys::text[], :lock_keys::text[],
              :places::int[]) AS t (payload, created_by, trace, unique_key, lock_key, place)
  WHERE :force OR NOT EXISTS (SELECT FROM penstock.control WHERE draining)
), added AS (
  INSERT INTO penstock.job (job_id, group_id, retry_of, deadline_at, lease_s, timeout_s, max_attempts, priority, kind,
                            queue, payload, lock_key, unique_key, cleanup_kind, created_by, trace)
  SELECT job_id, :group_id, :retry_of, penstock.now() + :deadline_in::interval, :lease_s, :timeout_s, :max_attempts,
         :priority, :kind, :queue, payload, lock_key, unique_key, :cleanup_kind, created_by, trace
  FROM input
  ORDER BY unique_key COLLATE "C"
  ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL DO NOTHING
  RETURNING job_id
), queued AS (
  INSERT INTO penstock.live (job_id, order_key, group_id, deadline, wake_at, status, queue, lock_key)
  SELECT job_id,
         (extract(epoch FROM penstock.now() + coalesce(:run_in::interval, '0')) * 1000000)::bigint
           + place + 1 + :priority::bigint * :ageing_us,
         :group_id, penstock.now() + :deadline_in::interval, penstock.now() + :run_in::interval,
         CASE WHEN :run_in::interval IS NULL THEN 0 ELSE 3 END, :queue, lock_key
  FROM input JOIN added USING (job_id)
  ORDER BY lock_key COLLATE "C"
  RETURNING job_id, order_key
), announced AS (
  INSERT INTO penstock.outbox (job_id, order_key, queue)
  SELECT job_id, order_key, :queue FROM queued WHERE :announce AND :run_in::interval IS NULL
)
SELECT job_id, queued.job_id IS NOT NULL AS created, queued.order_key
FROM input LEFT JOIN queued USING (job_id)
ORDER BY place
