-- The unfired groups among these, locked in one order by everybody. Finishers of one group queue up here, after they
-- deleted their live rows; so the last of them sees no live member. Index: job_group primary key.
SELECT group_id, gate, status = 0 AS open FROM penstock.job_group WHERE group_id = ANY (:group_ids::bigint[]) AND status < 10
ORDER BY group_id FOR UPDATE
