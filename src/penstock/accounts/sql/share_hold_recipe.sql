-- Locks: the row against its deletion, so that no share outlives what it is about.
SELECT true FROM penstock.recipe WHERE recipe_id = :resource_id FOR KEY SHARE
