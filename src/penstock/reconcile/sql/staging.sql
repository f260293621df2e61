-- name: chunks_ended
-- Which of these jobs are over. Index: outcome_job.
SELECT DISTINCT job_id, status FROM penstock.outcome WHERE job_id = ANY (:job_ids::bigint[])
