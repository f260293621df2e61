-- name: share_drop
DELETE FROM penstock.share
WHERE resource_type = :resource_type AND resource_id = :resource_id AND username = :username

-- name: share_hold_data_source
-- Locks: the row against its deletion, so that no share outlives what it is about.
SELECT true FROM penstock.data_source WHERE data_source_id = :resource_id::text::bigint FOR KEY SHARE

-- name: share_hold_mapping
-- Locks: the row against its deletion, so that no share outlives what it is about.
SELECT true FROM penstock.mapping WHERE mapping_id = :resource_id::text::bigint FOR KEY SHARE

-- name: share_hold_recipe
-- Locks: the row against its deletion, so that no share outlives what it is about.
SELECT true FROM penstock.recipe WHERE recipe_id = :resource_id FOR KEY SHARE

-- name: share_list
-- Index: primary key.
SELECT username, role, created_by, created_at
FROM penstock.share
WHERE resource_type = :resource_type AND resource_id = :resource_id
ORDER BY username

-- name: share_put
-- One role a resource and user; a second grant replaces the first.
INSERT INTO penstock.share (resource_type, resource_id, username, role, created_by)
VALUES (:resource_type, :resource_id, :username, :role, :created_by)
ON CONFLICT (resource_type, resource_id, username)
DO UPDATE SET role = EXCLUDED.role, created_by = EXCLUDED.created_by, created_at = EXCLUDED.created_at
RETURNING username, role, created_by, created_at

-- name: share_role
SELECT penstock.share_role(:resource_type, :resource_id, :username)
