DELETE FROM penstock.favourite
WHERE username = :username
  AND CASE :kind::text WHEN 'mapping' THEN mapping_id WHEN 'snapshot' THEN snapshot_id WHEN 'instance' THEN instance_id END = :resource_id
