SELECT count(*) FROM penstock.run r
WHERE (:recipe_id::text IS NULL OR r.recipe_id = :recipe_id) AND (:owner_username::text IS NULL OR r.owner_username = :owner_username)
