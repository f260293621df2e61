-- The attempts whose files may still become part of a result: those that run, those whose query writes elsewhere, and
-- those that are done and whose snapshot has no manifest yet. Read once a day, by the sweeper.
SELECT l.attempt_id::text AS attempt
FROM penstock.live l WHERE l.queue = :queue AND l.attempt_id IS NOT NULL
UNION
SELECT l.state ->> 'attempt' FROM penstock.live l WHERE l.queue = :queue AND l.state ->> 'attempt' IS NOT NULL
UNION
SELECT coalesce(o.result ->> 'attempt', o.attempt_id::text)
FROM penstock.snapshot s
JOIN penstock.snapshot_export e USING (snapshot_id)
JOIN penstock.outcome o ON o.job_id = e.job_id
WHERE s.status NOT IN ('ready', 'cancelled') AND o.status = 10 AND o.attempt_id IS NOT NULL
