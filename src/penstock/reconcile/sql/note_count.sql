SELECT count(*) FROM penstock.item_note WHERE recipe_id = :recipe_id AND (:assignee::text IS NULL OR assignee = :assignee)
