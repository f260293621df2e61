SELECT data_source_id, name, type, owner, is_default, config, credentials, created_at, updated_at, tested_at, test_ok, test_says
FROM penstock.data_source
WHERE data_source_id = :data_source_id
