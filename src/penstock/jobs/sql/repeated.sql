-- Writes that are ours already: a reply was lost after its commit. An attempt that ended its job is in outcome, one that
-- ended in another way is in attempt, with how. Index: outcome_job, attempt_job.
SELECT t.job_id, t.attempt_id, 'ended' AS how
FROM unnest(:job_ids::bigint[], :attempt_ids::uuid[]) AS t (job_id, attempt_id)
WHERE EXISTS (SELECT FROM penstock.outcome o WHERE o.job_id = t.job_id AND o.attempt_id = t.attempt_id)
UNION ALL
SELECT t.job_id, t.attempt_id, a.how
FROM unnest(:job_ids::bigint[], :attempt_ids::uuid[]) AS t (job_id, attempt_id)
JOIN penstock.attempt a ON a.job_id = t.job_id AND a.attempt_id = t.attempt_id
