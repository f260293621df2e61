-- Puts groups that the reaper looked at to the end of the line; those whose gate failed have their time already.
-- Index: job_group primary key.
UPDATE penstock.job_group
SET look_at = CASE WHEN status = 1 THEN penstock.now() END
WHERE group_id = ANY (:group_ids::bigint[]) AND status < 10 AND coalesce(look_at, deadline) <= penstock.now()
