SELECT count(DISTINCT catalog_name) AS total_catalogs, count(DISTINCT (catalog_name, schema_name)) AS total_schemas,
       count(DISTINCT (catalog_name, schema_name, table_name)) AS total_tables, count(*) AS total_columns,
       pg_total_relation_size('penstock.schema_column') AS index_size_bytes, max(cached_at) AS last_refresh
FROM penstock.schema_column
