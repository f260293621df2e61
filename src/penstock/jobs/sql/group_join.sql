-- The groups that can still be joined; held until the joining transaction ends, so that a gate cannot fire past it.
SELECT group_id FROM penstock.job_group WHERE group_id = ANY (:group_ids::bigint[]) AND status = 0
ORDER BY group_id FOR SHARE
