-- Index: decision_pair.
SELECT decision_id, kind, left_key, right_key, comment, created_by, created_at FROM penstock.decision WHERE recipe_id = :recipe_id ORDER BY decision_id
