SELECT catalog_name, schema_name, count(DISTINCT table_name) AS table_count, max(cached_at) AS cached_at
FROM penstock.schema_column WHERE catalog_name = :catalog AND data_source_id = ANY(:sources::bigint[])
GROUP BY catalog_name, schema_name ORDER BY schema_name
