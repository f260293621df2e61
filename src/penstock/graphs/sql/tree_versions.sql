-- Index: mapping_version primary key.
SELECT version, change_description, created_at, created_by FROM penstock.mapping_version
WHERE mapping_id = :mapping_id ORDER BY version DESC
