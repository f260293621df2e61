-- name: action_list
-- The actions of a job as they ended. Index: primary key.
SELECT * FROM penstock.maintenance_action WHERE job_id = :job_id ORDER BY ended_at, action

-- name: action_put
-- The end of an action, in a transaction that holds the job under its fence; said twice it stands once.
INSERT INTO penstock.maintenance_action (job_id, attempt_id, action, status, result)
VALUES (:job_id, :attempt_id, :action, :status, :result::jsonb)
ON CONFLICT (job_id, attempt_id, action) DO UPDATE SET status = excluded.status, result = excluded.result
