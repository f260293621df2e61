-- The latest run of a recipe that completed before this one. Index: run_recipe.
SELECT run_id, result FROM penstock.run WHERE recipe_id = :recipe_id AND run_id < :run_id AND status = 'completed' ORDER BY run_id DESC LIMIT 1
