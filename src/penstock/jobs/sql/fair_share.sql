-- Puts new jobs of one user :step seconds apart, behind those that the user added before; never more than :lead seconds
-- behind the present, so that nobody is made to wait for what a long list cost long ago.
-- Invariant: order_key only grows, so a ring that was given the smaller key wakes early and misses nothing.
-- Index: live primary key. Locks: the user's row, then the jobs, which nobody else sees before the commit.
WITH clock AS (
  INSERT INTO penstock.fair_share AS f (queue, username, virtual_at)
  VALUES (:queue, :username, penstock.now() + least(:step::float * cardinality(:job_ids::bigint[]), :lead::float) * interval '1 second')
  ON CONFLICT (queue, username) DO UPDATE
  SET virtual_at = least(greatest(f.virtual_at, penstock.now())
                         + :step::float * cardinality(:job_ids::bigint[]) * interval '1 second',
                         penstock.now() + :lead::float * interval '1 second')
  RETURNING extract(epoch FROM virtual_at - penstock.now()) - :step::float * cardinality(:job_ids::bigint[]) AS began
)
UPDATE penstock.live l
SET order_key = l.order_key
    + (least(greatest(c.began, 0) + (j.place - 1) * :step::float, :lead::float) * 1000000)::bigint
FROM clock c, unnest(:job_ids::bigint[]) WITH ORDINALITY AS j (job_id, place)
WHERE l.job_id = j.job_id
