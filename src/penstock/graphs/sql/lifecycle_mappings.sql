-- Mappings that have lived their time, or that nobody has used for too long, and that have no snapshot.
-- Index: snapshot_mapping.
SELECT m.mapping_id
FROM penstock.mapping m
WHERE (m.expires_at <= penstock.now() OR m.last_used_at + m.inactivity_timeout <= penstock.now())
  AND NOT EXISTS (SELECT FROM penstock.snapshot s WHERE s.mapping_id = m.mapping_id)
ORDER BY m.mapping_id
LIMIT :limit
