-- The latest run of a recipe before this one that has evidence: one that passed a threshold failed, but its items are open. Index: run_recipe.
SELECT run_id, result FROM penstock.run WHERE recipe_id = :recipe_id AND run_id < :run_id AND status IN ('completed', 'failed') AND result IS NOT NULL ORDER BY run_id DESC LIMIT 1
