-- Marks groups as failing; the first cause stays. Its gate fires once the last member is over.
UPDATE penstock.job_group SET status = 1, error = :error
WHERE group_id = ANY (:group_ids::bigint[]) AND status = 0
RETURNING group_id
