-- How many instances each owner has in each state; how many of them the limits count, as instance_load does; and for
-- how many nothing runs anywhere.
SELECT status, owner_username, count(*) AS count, count(*) FILTER (WHERE NOT placed) AS without_pod_name,
       count(*) FILTER (WHERE placed OR status IN ('waiting_for_snapshot', 'starting', 'running', 'resuming', 'stopping')) AS used
FROM penstock.instance GROUP BY status, owner_username
