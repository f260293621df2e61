-- name: schema_catalogs
SELECT catalog_name, count(DISTINCT schema_name) AS schema_count, max(cached_at) AS cached_at
FROM penstock.schema_column WHERE data_source_id = ANY(:sources::bigint[]) GROUP BY catalog_name ORDER BY catalog_name

-- name: schema_clear
DELETE FROM penstock.schema_column WHERE data_source_id = :data_source_id

-- name: schema_columns
-- Of two sources that have a table of this name the older one speaks. Index: schema_column_lookup.
SELECT catalog_name, schema_name, table_name, column_name, data_type, nullable AS is_nullable, position AS ordinal_position,
       default_value AS column_default, cached_at
FROM penstock.schema_column
WHERE catalog_name = :catalog AND schema_name = :schema AND table_name = :table
  AND data_source_id = (SELECT min(data_source_id) FROM penstock.schema_column
                        WHERE catalog_name = :catalog AND schema_name = :schema AND table_name = :table
                          AND data_source_id = ANY(:sources::bigint[]))
ORDER BY position

-- name: schema_fill
-- Many columns in one statement. A source that names a column's place twice keeps the first.
INSERT INTO penstock.schema_column (data_source_id, catalog_name, schema_name, table_name, table_type, column_name, position,
                                    data_type, nullable, default_value)
SELECT :data_source_id, t.*
FROM unnest(:catalogs::text[], :schemas::text[], :tables::text[], :kinds::text[], :names::text[], :positions::int[],
            :types::text[], :nullable::bool[], :defaults::text[]) AS t
ON CONFLICT DO NOTHING

-- name: schema_schemas
SELECT catalog_name, schema_name, count(DISTINCT table_name) AS table_count, max(cached_at) AS cached_at
FROM penstock.schema_column WHERE catalog_name = :catalog AND data_source_id = ANY(:sources::bigint[])
GROUP BY catalog_name, schema_name ORDER BY schema_name

-- name: schema_search_columns
-- Prefix first, then substring; a column that two sources have is told once. Reads the whole cache.
SELECT DISTINCT ON (rank, column_name, table_name, schema_name, catalog_name)
       catalog_name, schema_name, table_name, column_name, data_type, nullable AS is_nullable, position AS ordinal_position,
       default_value AS column_default, cached_at
FROM penstock.schema_column, LATERAL (SELECT lower(column_name) NOT LIKE lower(:pattern) || '%' AS rank) AS r
WHERE lower(column_name) LIKE '%' || lower(:pattern) || '%'
  AND data_source_id = ANY(:sources::bigint[])
ORDER BY rank, column_name, table_name, schema_name, catalog_name, data_source_id LIMIT :limit

-- name: schema_search_tables
-- Prefix first, then substring. Reads the whole cache: a substring has no index.
SELECT catalog_name, schema_name, table_name, min(table_type) AS table_type, count(DISTINCT column_name) AS column_count,
       max(cached_at) AS cached_at
FROM penstock.schema_column WHERE lower(table_name) LIKE '%' || lower(:pattern) || '%'
  AND data_source_id = ANY(:sources::bigint[])
GROUP BY catalog_name, schema_name, table_name
ORDER BY lower(table_name) NOT LIKE lower(:pattern) || '%', table_name, schema_name, catalog_name LIMIT :limit

-- name: schema_stats
SELECT count(DISTINCT catalog_name) AS total_catalogs, count(DISTINCT (catalog_name, schema_name)) AS total_schemas,
       count(DISTINCT (catalog_name, schema_name, table_name)) AS total_tables, count(*) AS total_columns,
       pg_total_relation_size('penstock.schema_column') AS index_size_bytes, max(cached_at) AS last_refresh
FROM penstock.schema_column

-- name: schema_tables
-- Index: schema_column_lookup.
SELECT catalog_name, schema_name, table_name, min(table_type) AS table_type, count(DISTINCT column_name) AS column_count,
       max(cached_at) AS cached_at
FROM penstock.schema_column WHERE catalog_name = :catalog AND schema_name = :schema
  AND data_source_id = ANY(:sources::bigint[])
GROUP BY catalog_name, schema_name, table_name ORDER BY table_name
