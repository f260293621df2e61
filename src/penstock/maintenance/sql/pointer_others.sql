-- Unqualified: PyIceberg made the table wherever the search path of our role leads.
-- The other tables of every catalog in this database: their storage may be the same.
SELECT catalog_name, table_namespace, table_name, metadata_location FROM iceberg_tables
WHERE metadata_location IS NOT NULL
  AND (catalog_name, table_namespace, table_name) <> (:catalog::text, :db::text, :table_name::text)
