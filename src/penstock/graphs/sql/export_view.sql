-- Export jobs with everything the face shows of them. Index: primary keys of job and live, outcome_job.
-- A result's list of parts may be large, and nobody asks the face for it.
SELECT j.job_id, j.kind, j.payload, j.group_id, j.created_at, coalesce(l.status, o.status) AS status,
       coalesce(l.attempt_no, o.attempt_no) AS attempt_no, coalesce(l.polls, 0) AS polls,
       coalesce(l.worker, o.worker) AS worker, coalesce(l.claimed_at, o.claimed_at) AS claimed_at,
       l.attempt_id, j.lease_s, l.wake_at, l.state, l.progress, o.finished_at,
       CASE WHEN jsonb_typeof(o.result) = 'object' THEN o.result - '{parts,columns,arrow_schema}'::text[] END AS result, o.error
FROM penstock.job j
LEFT JOIN penstock.live l USING (job_id)
LEFT JOIN LATERAL (SELECT * FROM penstock.outcome o WHERE o.job_id = j.job_id LIMIT 1) o ON true
WHERE j.job_id = ANY (:job_ids::bigint[]) AND j.kind = ANY (:kinds::text[])
