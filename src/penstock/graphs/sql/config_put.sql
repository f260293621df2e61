-- Fields that are given replace those that were set, the others stay. Locks the row, so that whoever comes second
-- checks what the first has left.
INSERT INTO penstock.platform_config AS c (name, value, updated_by) VALUES (:name, :value::jsonb, :updated_by)
ON CONFLICT (name) DO UPDATE SET value = c.value || excluded.value, updated_at = penstock.now(), updated_by = excluded.updated_by
RETURNING name, value, updated_at, updated_by
