-- An instance, held until the transaction ends. Whoever locks its snapshot too has locked that before.
SELECT i.*, s.name AS snapshot_name
FROM penstock.instance i LEFT JOIN penstock.snapshot s USING (snapshot_id)
WHERE i.instance_id = :instance_id
FOR NO KEY UPDATE OF i
