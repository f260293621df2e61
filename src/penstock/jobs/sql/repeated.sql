-- Writes that are ours already: a reply was lost after its commit. An attempt that ended its job is in outcome, one that
-- ended in another way (:how) is in attempt. Index: outcome_job, attempt_job.
SELECT t.job_id, t.attempt_id
FROM unnest(:job_ids::bigint[], :attempt_ids::uuid[]) AS t (job_id, attempt_id)
WHERE (:how = 'retried' AND EXISTS (SELECT FROM penstock.outcome o WHERE o.job_id = t.job_id AND o.attempt_id = t.attempt_id))
   OR EXISTS (SELECT FROM penstock.attempt a WHERE a.job_id = t.job_id AND a.attempt_id = t.attempt_id AND a.how = :how)
