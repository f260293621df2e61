UPDATE penstock.recipe SET version = version + 1, updated_at = penstock.now() WHERE recipe_id = :recipe_id RETURNING version
