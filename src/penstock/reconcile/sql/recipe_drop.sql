DELETE FROM penstock.recipe WHERE recipe_id = :recipe_id
