-- Fires the gate of a locked group that has no live member left. Run after group_lock, as its own statement, so that
-- it sees what the earlier finishers committed. Invariant: status passes 9 once, and only here.
-- Index: job_group primary key, live_group.
UPDATE penstock.job_group g
SET status = CASE g.status WHEN 0 THEN 10 ELSE 11 END, closed_at = penstock.now()
WHERE g.group_id = :group_id AND g.status < 10
  AND NOT EXISTS (SELECT FROM penstock.live l WHERE l.group_id = g.group_id)
RETURNING g.group_id, g.name, g.gate, g.payload, g.opens, g.error, g.status
