UPDATE penstock.data_source
SET name = coalesce(:name, name), config = coalesce(:config::jsonb, config), updated_at = now(),
    tested_at = NULL, test_ok = NULL, test_says = NULL
WHERE data_source_id = :data_source_id
