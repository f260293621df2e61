-- name: bulk_match
-- What a bulk delete is about, the oldest first; mappings have no status. Reads the one table that is meant.
WITH thing AS (
  SELECT mapping_id AS id, name, owner_username, created_at, NULL AS status FROM penstock.mapping WHERE :kind = 'mapping'
  UNION ALL
  SELECT snapshot_id, name, owner_username, created_at, status FROM penstock.snapshot WHERE :kind = 'snapshot'
  UNION ALL
  SELECT instance_id, name, owner_username, created_at, status FROM penstock.instance WHERE :kind = 'instance'
)
SELECT id FROM thing
WHERE (:name_prefix::text IS NULL OR starts_with(name, :name_prefix))
  AND (:created_by::text IS NULL OR owner_username = :created_by)
  AND (:older_than::interval IS NULL OR created_at <= penstock.now() - :older_than)
  AND (:status::text IS NULL OR status = :status)
ORDER BY id
LIMIT :limit
