-- Where a process is, or is to be, or is to be no more. Index: instance_errand.
SELECT i.*, NULL::text AS snapshot_name
FROM penstock.instance i
WHERE i.place = :place AND (i.placed OR i.status IN ('starting', 'resuming', 'stopping'))
ORDER BY i.instance_id
