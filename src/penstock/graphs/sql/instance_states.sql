-- How many instances each owner has in each state, and for how many of them nothing runs anywhere.
SELECT status, owner_username, count(*) AS count, count(*) FILTER (WHERE NOT placed) AS without_pod_name
FROM penstock.instance GROUP BY status, owner_username
