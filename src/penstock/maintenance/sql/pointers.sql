-- name: pointer_any
-- Whether there is a catalog in this database: PyIceberg creates its tables on the first opening.
SELECT to_regclass('iceberg_tables') IS NOT NULL

-- name: pointer_get
-- Unqualified: PyIceberg made the table wherever the search path of our role leads, and so does this.
-- Where the metadata of a table of the shared catalog is. Index: iceberg_tables' primary key.
SELECT metadata_location FROM iceberg_tables
WHERE catalog_name = :catalog AND table_namespace = :db AND table_name = :table_name

-- name: pointer_others
-- Unqualified: PyIceberg made the table wherever the search path of our role leads.
-- The other tables of every catalog in this database: their storage may be the same.
SELECT catalog_name, table_namespace, table_name, metadata_location FROM iceberg_tables
WHERE metadata_location IS NOT NULL
  AND (catalog_name, table_namespace, table_name) <> (:catalog::text, :db::text, :table_name::text)

-- name: pointer_swap
-- Compare and swap: moves the pointer only from where it was looked at. In a transaction that holds the job under its
-- fence, so that a worker which lost its job cannot commit.
UPDATE iceberg_tables SET metadata_location = :new, previous_metadata_location = :old
WHERE catalog_name = :catalog AND table_namespace = :db AND table_name = :table_name AND metadata_location = :old
