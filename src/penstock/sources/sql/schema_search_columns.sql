-- Prefix first, then substring; a column that two sources have is told once. Reads the whole cache.
SELECT DISTINCT ON (rank, column_name, table_name, schema_name, catalog_name)
       catalog_name, schema_name, table_name, column_name, data_type, nullable AS is_nullable, position AS ordinal_position,
       default_value AS column_default, cached_at
FROM penstock.schema_column, LATERAL (SELECT lower(column_name) NOT LIKE lower(:pattern) || '%' AS rank) AS r
WHERE lower(column_name) LIKE '%' || lower(:pattern) || '%'
  AND data_source_id = ANY(:sources::bigint[])
ORDER BY rank, column_name, table_name, schema_name, catalog_name, data_source_id LIMIT :limit
