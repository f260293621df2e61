-- Prefix first, then substring. Index: schema_column_table for the prefix.
SELECT catalog_name, schema_name, table_name, min(table_type) AS table_type, count(*) AS column_count, max(cached_at) AS cached_at
FROM penstock.schema_column WHERE lower(table_name) LIKE '%' || :pattern || '%'
GROUP BY catalog_name, schema_name, table_name
ORDER BY lower(table_name) NOT LIKE :pattern || '%', table_name, schema_name, catalog_name LIMIT :limit
