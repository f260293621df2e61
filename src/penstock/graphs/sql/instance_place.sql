-- Before a process is started. Invariant: one launch is placed once, and only while it is wanted.
UPDATE penstock.instance
SET placed = true, launched_at = penstock.now()
WHERE instance_id = :instance_id AND launch = :launch AND NOT placed AND status IN ('starting', 'resuming')
