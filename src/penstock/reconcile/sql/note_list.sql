SELECT side, key, label, comment, assignee, updated_by, updated_at FROM penstock.item_note
WHERE recipe_id = :recipe_id AND (:assignee::text IS NULL OR assignee = :assignee) ORDER BY updated_at DESC, side, key LIMIT :limit OFFSET :offset
