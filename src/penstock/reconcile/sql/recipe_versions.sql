SELECT version, digest, created_by, created_at FROM penstock.recipe_version WHERE recipe_id = :recipe_id ORDER BY version DESC LIMIT 1000
