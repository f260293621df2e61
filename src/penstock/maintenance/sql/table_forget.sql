-- Drops from the copy what a catalog does not list any more.
DELETE FROM penstock.maintained_table t
WHERE t.catalog = :catalog
  AND NOT EXISTS (SELECT FROM unnest(:dbs::text[], :names::text[]) AS k (db, name) WHERE k.db = t.db AND k.name = t.table_name)
