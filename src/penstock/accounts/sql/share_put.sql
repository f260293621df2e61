-- One role a resource and user; a second grant replaces the first.
INSERT INTO penstock.share (resource_type, resource_id, username, role, created_by)
VALUES (:resource_type, :resource_id, :username, :role, :created_by)
ON CONFLICT (resource_type, resource_id, username)
DO UPDATE SET role = EXCLUDED.role, created_by = EXCLUDED.created_by, created_at = EXCLUDED.created_at
RETURNING username, role, created_by, created_at
