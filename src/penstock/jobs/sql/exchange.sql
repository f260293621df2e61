-- Ends a batch of attempts and claims the next one, in one statement and so one commit.
-- Invariant: a job ends only by the deletion of its live row under its fence; the row is there once, so the end is.
-- Index: live primary key for the ends, live_ready for the claim (queue, order_key; ready rows only).
-- Locks: the rows ended, then the rows claimed (SKIP LOCKED). Whoever holds claimed rows waits for nothing any more: the
-- ends come first, and when a member of a group is among them (its group is still to be locked) nothing is claimed here.
-- Rows are claimed by their places, which a locked row keeps. One that was changed before it was locked is not at its
-- place for this statement's snapshot: it stays ready, and whoever made it so rings for it.
-- :mark is the low-water mark below which this process has seen no ready row; it only saves work.
-- Ends come back as the places of their endings, all in one row but for members of groups, whose gates must be moved.
-- With :alone the statement is a transaction by itself: members of groups are left for one that can move their gates, and
-- nothing is claimed unless all the rest ended.
-- An ending with an error is a failure. The columns of a claimed job from its kind on come in the order of model.Claimed.
-- :polled takes only jobs that were parked before (true) or never (false); NULL, any.
-- :session is the process that claims, or NULL; one that is over and was not heard of since is given nothing: a request of
-- a process that died may still be waiting here. A registration that commits while this statement runs is not seen; what
-- is claimed then is fenced like any other attempt, and ends by its lease.
WITH result AS MATERIALIZED (
  SELECT * FROM unnest(:job_ids::bigint[], :attempt_ids::uuid[], :results::jsonb[], :errors::jsonb[])
    WITH ORDINALITY AS t (job_id, attempt_id, result, error, place)
), ended AS (
  DELETE FROM penstock.live l
  USING result r
  WHERE l.job_id = r.job_id AND l.attempt_id = r.attempt_id AND (NOT :alone OR l.group_id IS NULL)
  RETURNING l.job_id, l.attempt_id, l.attempt_no, l.worker, l.claimed_at, l.group_id,
            CASE WHEN r.error IS NULL THEN 10 ELSE 11 END AS status, r.result, r.error, r.place
), recorded AS (
  INSERT INTO penstock.outcome (job_id, claimed_at, attempt_id, attempt_no, status, worker, result, error)
  SELECT job_id, claimed_at, attempt_id, attempt_no, status, worker, result, error FROM ended
), chosen AS MATERIALIZED (
  SELECT l.ctid AS place, l.job_id
  FROM penstock.live l
  WHERE CASE WHEN :alone THEN (SELECT count(*) FROM ended) = (SELECT count(*) FROM result)
             ELSE NOT EXISTS (SELECT FROM ended WHERE group_id IS NOT NULL) END
    AND l.queue = :queue AND l.status = 0 AND l.order_key >= :mark
    AND (:polled::boolean IS NULL OR (l.polls > 0) = :polled)
    AND NOT EXISTS (SELECT FROM penstock.worker_session s
                    WHERE s.session = :session AND s.ended_at IS NOT NULL AND s.alive_at IS NULL)
  ORDER BY l.order_key
  LIMIT :limit
  FOR NO KEY UPDATE SKIP LOCKED
), fence AS MATERIALIZED (
  SELECT left(gen_random_uuid()::text, 24) AS seed
), claimed AS (
  UPDATE penstock.live l
  SET status = 1,
      attempt_id = penstock.attempt_id(f.seed, l.job_id),
      attempt_no = l.attempt_no + 1,
      worker = :worker,
      session = :session,
      claimed_at = penstock.now(),
      deadline = least(l.deadline, penstock.now() + make_interval(secs => j.timeout_s)),
      lease_until = least(j.deadline_at, penstock.now() + make_interval(secs => j.lease_s)),
      overdue = false,
      wake_at = NULL
  FROM chosen c
  JOIN penstock.job j ON j.job_id = c.job_id
  CROSS JOIN fence f
  WHERE l.ctid = c.place
  RETURNING l.job_id, l.attempt_id, l.attempt_no, l.group_id, l.order_key, l.polls, l.unhandled, l.state, l.deadline,
            j.kind, j.payload, j.max_attempts, j.lease_s, j.created_at, j.lock_key, j.trace
)
SELECT NULL::bigint[] AS places, order_key, NULL::smallint AS status, job_id, attempt_id, kind, payload, attempt_no,
       max_attempts, lease_s, date_part('epoch', deadline - penstock.now()) AS seconds_left,
       date_part('epoch', penstock.now() - created_at) AS waited, polls, unhandled, state, group_id, lock_key, trace
FROM claimed
UNION ALL
SELECT array_agg(place), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM ended WHERE group_id IS NULL
HAVING count(*) > 0
UNION ALL
SELECT ARRAY[place], NULL, status, job_id, attempt_id, NULL, NULL, attempt_no, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       group_id, NULL, NULL
FROM ended WHERE group_id IS NOT NULL
