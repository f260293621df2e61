SELECT data_source_id, name, type, owner, is_default, config, credentials, created_at, updated_at, tested_at, test_ok, test_says
FROM penstock.data_source LEFT JOIN penstock_secret.data_source_credentials USING (data_source_id)
WHERE :type::text IS NULL OR type = :type
ORDER BY data_source_id DESC
OFFSET :offset LIMIT :limit
