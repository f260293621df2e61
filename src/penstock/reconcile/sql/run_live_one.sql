-- Whether a job is still live: cancelling one member of a group takes those that wait along.
SELECT job_id FROM penstock.live WHERE job_id = :job_id
