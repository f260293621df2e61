-- Whether there is a catalog in this database: PyIceberg creates its tables on the first opening.
SELECT to_regclass('iceberg_tables') IS NOT NULL
