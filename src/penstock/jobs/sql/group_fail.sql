-- Marks groups as failing; the first cause stays. Its gate fires once the last member is over. The reaper looks at it:
-- a member that goes back to its queue is cancelled there.
UPDATE penstock.job_group SET status = 1, error = :error, look_at = penstock.now()
WHERE group_id = ANY (:group_ids::bigint[]) AND status = 0
RETURNING group_id
