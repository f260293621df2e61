-- A recipe's version, the newest without a number. Index: primary keys of recipe and recipe_version.
SELECT r.recipe_id, r.owner_username, r.version AS latest, v.version, v.document, v.digest, v.created_by, v.created_at, r.updated_at
FROM penstock.recipe r JOIN penstock.recipe_version v ON v.recipe_id = r.recipe_id AND v.version = coalesce(:version::integer, r.version)
WHERE r.recipe_id = :recipe_id
