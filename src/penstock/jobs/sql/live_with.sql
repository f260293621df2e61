-- Jobs that are not over and whose payload holds a fragment, oldest first, with their number. Reads every live job.
SELECT j.job_id, count(*) OVER () AS total
FROM penstock.live l
JOIN penstock.job j USING (job_id)
WHERE j.payload @> :fragment::jsonb
ORDER BY j.job_id
LIMIT :limit
