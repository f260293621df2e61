-- Jobs whose query was submitted before they were made begin parked, and are due at once.
-- Invariant: only for jobs that this very transaction has added. Index: live primary key.
UPDATE penstock.live l SET status = 2, polls = 1, state = t.state, wake_at = penstock.now()
FROM unnest(:job_ids::bigint[], :states::jsonb[]) AS t (job_id, state)
WHERE l.job_id = t.job_id
