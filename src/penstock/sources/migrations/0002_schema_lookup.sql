-- The schema browser walks down by names, whichever source they are of.
CREATE INDEX schema_column_lookup ON penstock.schema_column (catalog_name, schema_name, table_name);
DROP INDEX penstock.schema_column_table;
DROP INDEX penstock.schema_column_column;
