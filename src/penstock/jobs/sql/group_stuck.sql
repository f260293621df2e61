-- Groups that the reaper must look at, the longest due first: over their deadline, failing, or with a gate that failed.
-- A member may have joined since this statement's snapshot: only a group that is failing may have its members ended.
-- Index: job_group_look. Locks: the groups, SKIP LOCKED.
SELECT g.group_id, coalesce(g.deadline <= penstock.now(), false) AS overdue, g.status = 1 AS failing
FROM penstock.job_group g
WHERE g.status < 10 AND coalesce(g.look_at, g.deadline) <= penstock.now()
ORDER BY coalesce(g.look_at, g.deadline)
LIMIT :limit
FOR UPDATE OF g SKIP LOCKED
