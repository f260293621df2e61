-- name: favourite_add
-- One more favourite, if the thing is there. A second one breaks a unique key.
WITH thing AS (
  SELECT name FROM penstock.mapping WHERE :kind = 'mapping' AND mapping_id = :resource_id
  UNION ALL SELECT name FROM penstock.snapshot WHERE :kind = 'snapshot' AND snapshot_id = :resource_id
  UNION ALL SELECT name FROM penstock.instance WHERE :kind = 'instance' AND instance_id = :resource_id
)
, added AS (
  INSERT INTO penstock.favourite (username, mapping_id, snapshot_id, instance_id)
  SELECT :username, CASE :kind WHEN 'mapping' THEN :resource_id END, CASE :kind WHEN 'snapshot' THEN :resource_id END,
         CASE :kind WHEN 'instance' THEN :resource_id END
  FROM thing
  RETURNING created_at
)
SELECT :kind::text AS resource_type, :resource_id::bigint AS resource_id, thing.name AS resource_name, added.created_at
FROM added, thing

-- name: favourite_count
SELECT count(*) FROM penstock.favourite f
WHERE f.username = :username
  AND CASE :kind::text WHEN 'mapping' THEN f.mapping_id WHEN 'snapshot' THEN f.snapshot_id WHEN 'instance' THEN f.instance_id ELSE 0 END IS NOT NULL

-- name: favourite_drop
DELETE FROM penstock.favourite
WHERE username = :username
  AND CASE :kind::text WHEN 'mapping' THEN mapping_id WHEN 'snapshot' THEN snapshot_id WHEN 'instance' THEN instance_id END = :resource_id

-- name: favourite_list
-- A user's favourites with the names that the things have now. Index: favourite_username_mapping_id_key, primary keys.
SELECT CASE WHEN f.mapping_id IS NOT NULL THEN 'mapping' WHEN f.snapshot_id IS NOT NULL THEN 'snapshot' ELSE 'instance' END AS resource_type,
       coalesce(f.mapping_id, f.snapshot_id, f.instance_id) AS resource_id,
       coalesce(m.name, s.name, i.name) AS resource_name, f.created_at
FROM penstock.favourite f
LEFT JOIN penstock.mapping m USING (mapping_id)
LEFT JOIN penstock.snapshot s ON s.snapshot_id = f.snapshot_id
LEFT JOIN penstock.instance i ON i.instance_id = f.instance_id
WHERE f.username = :username
  AND CASE :kind::text WHEN 'mapping' THEN f.mapping_id WHEN 'snapshot' THEN f.snapshot_id WHEN 'instance' THEN f.instance_id ELSE 0 END IS NOT NULL
ORDER BY f.created_at DESC, resource_type DESC, resource_id DESC
LIMIT :limit OFFSET :offset
