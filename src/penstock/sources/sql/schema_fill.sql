-- Many columns in one statement. A source that names a column's place twice keeps the first.
INSERT INTO penstock.schema_column (data_source_id, catalog_name, schema_name, table_name, table_type, column_name, position,
                                    data_type, nullable, default_value)
SELECT :data_source_id, t.*
FROM unnest(:catalogs::text[], :schemas::text[], :tables::text[], :kinds::text[], :names::text[], :positions::int[],
            :types::text[], :nullable::bool[], :defaults::text[]) AS t
ON CONFLICT DO NOTHING
