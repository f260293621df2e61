-- The latest run of a recipe before this one that has evidence: one that passed a threshold failed, but its items are
-- open. A run of somebody else counts only if it read the same sources, for its open items go into this one's evidence.
-- Index: run_recipe.
SELECT p.run_id, p.result
FROM penstock.run p JOIN penstock.run r ON r.run_id = :run_id
WHERE p.recipe_id = :recipe_id AND p.run_id < :run_id AND p.status IN ('completed', 'failed') AND p.result IS NOT NULL
  AND (p.owner_username = r.owner_username
       OR (p.inputs #> '{left,data_source_id}' = r.inputs #> '{left,data_source_id}'
           AND p.inputs #> '{right,data_source_id}' = r.inputs #> '{right,data_source_id}'))
ORDER BY p.run_id DESC LIMIT 1
