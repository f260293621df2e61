-- A table's columns in one statement.
INSERT INTO penstock.schema_column (data_source_id, catalog_name, schema_name, table_name, table_type, column_name, position,
                                    data_type, nullable, default_value)
SELECT :data_source_id, :catalog_name, :schema_name, :table_name, :table_type, t.*
FROM unnest(:names::text[], :positions::int[], :types::text[], :nullable::bool[], :defaults::text[]) AS t
ON CONFLICT DO NOTHING
