-- Turns the tap for new jobs; what is queued and what runs goes on.
UPDATE penstock.control SET draining = :draining, changed_at = penstock.now(), changed_by = :actor, reason = :reason
RETURNING draining, changed_at, changed_by, reason
