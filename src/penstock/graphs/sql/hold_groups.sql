-- Locks groups after their live rows and before any snapshot, in the order of everybody. Index: job_group primary key.
SELECT group_id FROM penstock.job_group WHERE group_id = ANY (:group_ids::bigint[]) ORDER BY group_id FOR UPDATE
