-- Export jobs of all snapshots, newest first; the words are those of the face. Those that are not over are few, and are
-- looked for from their own table. Index: snapshot_export_job_id_key, live primary key, outcome_job.
WITH found AS (
  SELECT e.job_id, e.snapshot_id, e.job_type AS entity_type, e.entity_name, s.owner_username,
         coalesce(l.claimed_at, o.claimed_at) AS claimed_at, coalesce(l.worker, o.worker) AS claimed_by,
         coalesce(l.attempt_no, o.attempt_no, 0) AS attempts, o.error,
         CASE WHEN o.status = 10 THEN 'completed' WHEN o.status IS NOT NULL THEN 'failed'
              WHEN l.polls > 0 THEN 'submitted' WHEN l.status = 1 THEN 'claimed'
              WHEN l.job_id IS NOT NULL THEN 'pending' ELSE 'failed' END AS status
  FROM penstock.snapshot_export e
  JOIN penstock.snapshot s USING (snapshot_id)
  LEFT JOIN penstock.live l ON l.job_id = e.job_id
  LEFT JOIN LATERAL (SELECT * FROM penstock.outcome o WHERE o.job_id = e.job_id LIMIT 1) o ON true
  WHERE (:snapshot_id::bigint IS NULL OR e.snapshot_id = :snapshot_id)
    AND (:job_id::bigint IS NULL OR e.job_id = :job_id)
    AND (coalesce(:status, 'failed') IN ('completed', 'failed') OR e.job_id IN (SELECT job_id FROM penstock.live))
)
SELECT f.*, count(*) OVER () AS total FROM found f
WHERE :status::text IS NULL OR f.status = :status
ORDER BY f.job_id DESC LIMIT :limit OFFSET :offset
