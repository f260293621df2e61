-- Shows how far attempts are. Fenced; only what changed is written. Index: live primary key.
WITH input AS MATERIALIZED (
  SELECT * FROM unnest(:job_ids::bigint[], :attempt_ids::uuid[], :progress::jsonb[]) AS t (job_id, attempt_id, progress)
)
UPDATE penstock.live l SET progress = i.progress
FROM input i
WHERE l.job_id = i.job_id AND l.attempt_id = i.attempt_id
RETURNING l.job_id, l.attempt_id
