-- One policy, at its place: the first that fits a table holds.
INSERT INTO penstock.maintenance_policy (name, position, definition, updated_by)
VALUES (:name, :position, :definition::jsonb, :updated_by)
