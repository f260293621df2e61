-- The other tables of the shared catalog.
SELECT table_namespace, table_name, metadata_location FROM iceberg_tables
WHERE catalog_name = :catalog AND metadata_location IS NOT NULL AND (table_namespace, table_name) <> (:db::text, :table_name::text)
