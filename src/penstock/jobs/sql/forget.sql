-- Removes jobs that ended before the retention, with their attempts; a batch at a time. A job that lives is never old.
-- Index: the primary key of job (ids grow with time: nothing past the first job that is young is read), outcome_job,
-- attempt_job.
WITH young AS MATERIALIZED (
  SELECT n.job_id FROM penstock.job n
  WHERE n.created_at >= penstock.now() - make_interval(days => :days)
  ORDER BY n.job_id LIMIT 1
), old AS MATERIALIZED (
  SELECT j.job_id FROM penstock.job j
  WHERE j.job_id < coalesce((SELECT job_id FROM young), 9223372036854775807)
    AND NOT EXISTS (SELECT FROM penstock.live l WHERE l.job_id = j.job_id)
    AND NOT EXISTS (SELECT FROM penstock.outcome o WHERE o.job_id = j.job_id
                    AND o.finished_at >= penstock.now() - make_interval(days => :days))
  ORDER BY j.job_id
  LIMIT :limit
), attempts AS (
  DELETE FROM penstock.attempt a USING old WHERE a.job_id = old.job_id
), outcomes AS (
  DELETE FROM penstock.outcome o USING old WHERE o.job_id = old.job_id
)
DELETE FROM penstock.job j USING old WHERE j.job_id = old.job_id
