-- The recipe's row, locked: versions are counted by one writer at a time.
SELECT recipe_id, owner_username, version FROM penstock.recipe WHERE recipe_id = :recipe_id FOR UPDATE
