-- Index: primary key.
SELECT username, role, created_by, created_at
FROM penstock.share
WHERE resource_type = :resource_type AND resource_id = :resource_id
ORDER BY username
