-- Prefix first, then substring. Reads the whole cache: a substring has no index.
SELECT catalog_name, schema_name, table_name, min(table_type) AS table_type, count(DISTINCT column_name) AS column_count,
       max(cached_at) AS cached_at
FROM penstock.schema_column WHERE lower(table_name) LIKE '%' || lower(:pattern) || '%'
  AND data_source_id = ANY(:sources::bigint[])
GROUP BY catalog_name, schema_name, table_name
ORDER BY lower(table_name) NOT LIKE lower(:pattern) || '%', table_name, schema_name, catalog_name LIMIT :limit
