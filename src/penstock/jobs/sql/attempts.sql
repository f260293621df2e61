-- Every attempt of a job in order: those that ended without ending it, the one that runs, the one that ended it.
-- Index: attempt_job, live primary key, outcome_job.
SELECT attempt_id, attempt_no, worker, claimed_at, ended_at, how, detail FROM penstock.attempt WHERE job_id = :job_id
UNION ALL
SELECT attempt_id, attempt_no, worker, claimed_at, NULL, 'running', progress FROM penstock.live
WHERE job_id = :job_id AND attempt_id IS NOT NULL
UNION ALL
SELECT attempt_id, attempt_no, worker, claimed_at, finished_at,
       CASE status WHEN 10 THEN 'succeeded' WHEN 11 THEN 'failed' ELSE 'cancelled' END, error
FROM penstock.outcome WHERE job_id = :job_id AND attempt_id IS NOT NULL
ORDER BY claimed_at, ended_at NULLS LAST
