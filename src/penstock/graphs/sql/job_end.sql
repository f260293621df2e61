-- How one job ended; nothing while it has not. Index: outcome_job.
SELECT status, result, error FROM penstock.outcome WHERE job_id = :job_id LIMIT 1
