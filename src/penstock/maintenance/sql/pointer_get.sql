-- Unqualified: PyIceberg made the table wherever the search path of our role leads, and so does this.
-- Where the metadata of a table of the shared catalog is. Index: iceberg_tables' primary key.
SELECT metadata_location FROM iceberg_tables
WHERE catalog_name = :catalog AND table_namespace = :db AND table_name = :table_name
