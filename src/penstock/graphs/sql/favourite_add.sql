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
