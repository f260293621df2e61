-- One table as it was seen last. Index: primary key.
SELECT * FROM penstock.maintained_table WHERE catalog = :catalog AND db = :db AND table_name = :table_name
