-- Of two sources that have a table of this name the older one speaks. Index: schema_column_lookup.
SELECT catalog_name, schema_name, table_name, column_name, data_type, nullable AS is_nullable, position AS ordinal_position,
       default_value AS column_default, cached_at
FROM penstock.schema_column
WHERE catalog_name = :catalog AND schema_name = :schema AND table_name = :table
  AND data_source_id = (SELECT min(data_source_id) FROM penstock.schema_column
                        WHERE catalog_name = :catalog AND schema_name = :schema AND table_name = :table
                          AND data_source_id = ANY(:sources::bigint[]))
ORDER BY position
