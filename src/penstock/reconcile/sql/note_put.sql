-- What is null stays as it is.
INSERT INTO penstock.item_note (recipe_id, side, key, label, comment, assignee, updated_by) VALUES (:recipe_id, :side, :key, :label, :comment, :assignee, :updated_by)
ON CONFLICT (recipe_id, side, key) DO UPDATE SET label = coalesce(excluded.label, item_note.label), comment = coalesce(excluded.comment, item_note.comment),
  assignee = coalesce(excluded.assignee, item_note.assignee), updated_by = excluded.updated_by, updated_at = penstock.now()
