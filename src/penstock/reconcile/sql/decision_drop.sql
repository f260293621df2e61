DELETE FROM penstock.decision WHERE recipe_id = :recipe_id AND decision_id = :decision_id
