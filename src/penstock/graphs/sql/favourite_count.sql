SELECT count(*) FROM penstock.favourite f
WHERE f.username = :username
  AND CASE :kind::text WHEN 'mapping' THEN f.mapping_id WHEN 'snapshot' THEN f.snapshot_id WHEN 'instance' THEN f.instance_id ELSE 0 END IS NOT NULL
