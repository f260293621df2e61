-- Starts that take too long, and stops that do.
SELECT i.*, NULL::text AS snapshot_name
FROM penstock.instance i
WHERE (status IN ('starting', 'resuming') AND status_at <= penstock.now() - make_interval(secs => :starting))
   OR (status = 'stopping' AND NOT force_stop AND status_at <= penstock.now() - make_interval(secs => :stopping))
ORDER BY i.instance_id
