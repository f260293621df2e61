-- name: decision_add
INSERT INTO penstock.decision (recipe_id, kind, left_key, right_key, comment, created_by) VALUES (:recipe_id, :kind, :left_key, :right_key, :comment, :created_by) RETURNING decision_id

-- name: decision_drop
DELETE FROM penstock.decision WHERE recipe_id = :recipe_id AND decision_id = :decision_id

-- name: decision_list
-- Index: decision_pair.
SELECT decision_id, kind, left_key, right_key, comment, created_by, created_at FROM penstock.decision WHERE recipe_id = :recipe_id ORDER BY decision_id

-- name: note_count
SELECT count(*) FROM penstock.item_note WHERE recipe_id = :recipe_id AND (:assignee::text IS NULL OR assignee = :assignee)

-- name: note_list
SELECT side, key, label, comment, assignee, updated_by, updated_at FROM penstock.item_note
WHERE recipe_id = :recipe_id AND (:assignee::text IS NULL OR assignee = :assignee) ORDER BY updated_at DESC, side, key LIMIT :limit OFFSET :offset

-- name: note_put
-- Null arguments leave their columns unchanged.
INSERT INTO penstock.item_note (recipe_id, side, key, label, comment, assignee, updated_by) VALUES (:recipe_id, :side, :key, :label, :comment, :assignee, :updated_by)
ON CONFLICT (recipe_id, side, key) DO UPDATE SET label = coalesce(excluded.label, item_note.label), comment = coalesce(excluded.comment, item_note.comment),
  assignee = coalesce(excluded.assignee, item_note.assignee), updated_by = excluded.updated_by, updated_at = penstock.now()
