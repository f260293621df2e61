SELECT r.recipe_id, r.owner_username, r.version AS latest, v.version, v.document, v.digest, v.created_by, v.created_at, r.updated_at
FROM penstock.recipe r JOIN penstock.recipe_version v USING (recipe_id, version)
ORDER BY r.updated_at DESC, r.recipe_id LIMIT :limit OFFSET :offset
