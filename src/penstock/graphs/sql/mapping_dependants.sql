-- The snapshots that need a mapping, of any version: how many, and the first of them. Index: snapshot_mapping.
SELECT snapshot_id, count(*) OVER () AS total FROM penstock.snapshot WHERE mapping_id = :mapping_id
ORDER BY snapshot_id LIMIT :limit
