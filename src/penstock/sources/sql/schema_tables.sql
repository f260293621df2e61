-- Index: schema_column_lookup.
SELECT catalog_name, schema_name, table_name, min(table_type) AS table_type, count(DISTINCT column_name) AS column_count,
       max(cached_at) AS cached_at
FROM penstock.schema_column WHERE catalog_name = :catalog AND schema_name = :schema
  AND data_source_id = ANY(:sources::bigint[])
GROUP BY catalog_name, schema_name, table_name ORDER BY table_name
