-- Compare and swap: moves the pointer only from where it was looked at. In a transaction that holds the job under its
-- fence, so that a worker which lost its job cannot commit.
UPDATE iceberg_tables SET metadata_location = :new, previous_metadata_location = :old
WHERE catalog_name = :catalog AND table_namespace = :db AND table_name = :table_name AND metadata_location = :old
