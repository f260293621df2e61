SELECT catalog_name, schema_name, table_name, column_name, data_type, nullable AS is_nullable, position AS ordinal_position,
       default_value AS column_default, cached_at
FROM penstock.schema_column WHERE lower(column_name) LIKE '%' || :pattern || '%'
ORDER BY lower(column_name) NOT LIKE :pattern || '%', column_name, table_name, schema_name, catalog_name LIMIT :limit
