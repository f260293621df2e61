-- What is live of a run, locked by job_id before its groups and its row. Index: live_group.
SELECT job_id FROM penstock.live WHERE group_id = ANY (:group_ids::bigint[]) ORDER BY job_id FOR UPDATE
