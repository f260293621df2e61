-- The actions of a job as they ended. Index: primary key.
SELECT * FROM penstock.maintenance_action WHERE job_id = :job_id ORDER BY ended_at, action
