-- name: recipe_add
INSERT INTO penstock.recipe (recipe_id, owner_username, version) VALUES (:recipe_id, :owner_username, 1) ON CONFLICT DO NOTHING RETURNING recipe_id

-- name: recipe_count
SELECT count(*) FROM penstock.recipe

-- name: recipe_drop
DELETE FROM penstock.recipe WHERE recipe_id = :recipe_id

-- name: recipe_get
-- A version of a recipe; the newest if no number is passed. Index: primary keys of recipe and recipe_version.
SELECT r.recipe_id, r.owner_username, r.version AS latest, v.version, v.document, v.digest, v.created_by, v.created_at, r.updated_at
FROM penstock.recipe r JOIN penstock.recipe_version v ON v.recipe_id = r.recipe_id AND v.version = coalesce(:version::integer, r.version)
WHERE r.recipe_id = :recipe_id

-- name: recipe_lends
-- Whether a recipe lets a user read one of its sources: it is shared with them, and its owner may
-- lend the source.
SELECT penstock.share_role('recipe', r.recipe_id, :username) IS NOT NULL
       AND penstock.may_lend_source(:data_source_id, r.owner_username)
FROM penstock.recipe r WHERE r.recipe_id = :recipe_id

-- name: recipe_list
SELECT r.recipe_id, r.owner_username, r.version AS latest, v.version, v.document, v.digest, v.created_by, v.created_at, r.updated_at
FROM penstock.recipe r JOIN penstock.recipe_version v USING (recipe_id, version)
ORDER BY r.updated_at DESC, r.recipe_id LIMIT :limit OFFSET :offset

-- name: recipe_next
UPDATE penstock.recipe SET version = version + 1, updated_at = penstock.now() WHERE recipe_id = :recipe_id RETURNING version

-- name: recipe_turn
-- Locks the recipe's row: one writer at a time adds a version.
SELECT recipe_id, owner_username, version FROM penstock.recipe WHERE recipe_id = :recipe_id FOR UPDATE

-- name: recipe_version_add
INSERT INTO penstock.recipe_version (recipe_id, version, document, digest, created_by) VALUES (:recipe_id, :version, :document, :digest, :created_by)

-- name: recipe_versions
SELECT version, digest, created_by, created_at FROM penstock.recipe_version WHERE recipe_id = :recipe_id ORDER BY version DESC LIMIT 1000
