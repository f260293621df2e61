-- Adds jobs that differ only in their payload, author and trace. Nothing is added while the system drains, unless :force.
-- Answers in one row: the new jobs in the order of their payloads (NULL: the system drains), and the first one's order.
-- Invariant: a job row, its live row and, if :audited, its audit row come together, with :announce also the announcement
-- of what is ready. Locks: none that anybody waits for.
WITH input AS MATERIALIZED (
  SELECT nextval('penstock.job_id') AS job_id, t.payload, t.created_by, t.trace, t.place
  FROM unnest(:payloads::jsonb[], :created_bys::text[], :traces::text[])
    WITH ORDINALITY AS t (payload, created_by, trace, place)
  WHERE :force OR NOT EXISTS (SELECT FROM penstock.control WHERE draining)
), added AS (
  INSERT INTO penstock.job (job_id, group_id, retry_of, deadline_at, lease_s, timeout_s, max_attempts, priority, kind,
                            queue, payload, cleanup_kind, created_by, trace)
  SELECT job_id, :group_id, :retry_of, penstock.now() + :deadline_in::interval, :lease_s, :timeout_s, :max_attempts,
         :priority, :kind, :queue, payload, :cleanup_kind, created_by, trace
  FROM input
), queued AS (
  INSERT INTO penstock.live (job_id, order_key, group_id, deadline, wake_at, status, queue)
  SELECT job_id,
         (extract(epoch FROM penstock.now() + coalesce(:run_in::interval, '0')) * 1000000)::bigint
           + place + :priority::bigint * :ageing_us,
         :group_id, penstock.now() + :deadline_in::interval, penstock.now() + :run_in::interval,
         CASE WHEN :run_in::interval IS NULL THEN 0 ELSE 3 END, :queue
  FROM input
  RETURNING job_id, order_key
), announced AS (
  INSERT INTO penstock.outbox (job_id, order_key, queue)
  SELECT job_id, order_key, :queue FROM queued WHERE :announce AND :run_in::interval IS NULL
), audited AS (
  INSERT INTO penstock.audit (actor, action, subject, detail)
  SELECT created_by, 'job.enqueue', 'job:' || job_id, jsonb_build_object('kind', :kind::text)
  FROM input
  WHERE :audited
)
SELECT (SELECT array_agg(job_id ORDER BY place) FROM input) AS job_ids,
       (SELECT min(order_key) FROM queued) AS order_key
