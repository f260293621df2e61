-- name: policy_add
-- One policy, at its place: the first that fits a table holds.
INSERT INTO penstock.maintenance_policy (name, position, definition, updated_by)
VALUES (:name, :position, :definition::jsonb, :updated_by)

-- name: policy_clear
-- The set of policies is replaced as a whole, in one transaction.
DELETE FROM penstock.maintenance_policy

-- name: policy_list
-- The policies in their order.
SELECT * FROM penstock.maintenance_policy ORDER BY position
