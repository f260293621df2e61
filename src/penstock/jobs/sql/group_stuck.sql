-- Groups that the reaper must look at: over their deadline, failing with members left, or without any live member.
-- A member may have joined since this statement's snapshot: only a group that is failing may have its members ended.
-- Index: job_group_open.
SELECT g.group_id, coalesce(g.deadline <= penstock.now(), false) AS overdue, g.status = 1 AS failing
FROM penstock.job_group g
WHERE g.status < 10
  AND (g.status = 1 OR g.deadline <= penstock.now()
       OR NOT EXISTS (SELECT FROM penstock.live l WHERE l.group_id = g.group_id))
ORDER BY g.group_id
LIMIT :limit
FOR UPDATE OF g SKIP LOCKED
