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
