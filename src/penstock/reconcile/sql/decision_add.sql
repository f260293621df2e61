INSERT INTO penstock.decision (recipe_id, kind, left_key, right_key, comment, created_by) VALUES (:recipe_id, :kind, :left_key, :right_key, :comment, :created_by) RETURNING decision_id
