-- What attempts that are about to end have running elsewhere: the state they were parked with, and who can stop it.
-- Only the holder of a fence changes the state under it, so nothing is locked. Index: live primary key.
SELECT l.job_id, l.attempt_id, 11::smallint AS status, l.state, j.kind, j.payload, j.cleanup_kind
FROM unnest(:job_ids::bigint[], :attempt_ids::uuid[]) AS r (job_id, attempt_id)
JOIN penstock.live l ON l.job_id = r.job_id AND l.attempt_id = r.attempt_id
JOIN penstock.job j ON j.job_id = l.job_id
WHERE l.state IS NOT NULL AND j.cleanup_kind IS NOT NULL
