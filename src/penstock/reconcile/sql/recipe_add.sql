INSERT INTO penstock.recipe (recipe_id, owner_username, version) VALUES (:recipe_id, :owner_username, 1) ON CONFLICT DO NOTHING RETURNING recipe_id
