SELECT catalog_name, count(DISTINCT schema_name) AS schema_count, max(cached_at) AS cached_at
FROM penstock.schema_column WHERE data_source_id = ANY(:sources::bigint[]) GROUP BY catalog_name ORDER BY catalog_name
