-- name: table_forget
-- Drops from the copy what a catalog does not list any more.
DELETE FROM penstock.maintained_table t
WHERE t.catalog = :catalog
  AND NOT EXISTS (SELECT FROM unnest(:dbs::text[], :names::text[]) AS k (db, name) WHERE k.db = t.db AND k.name = t.table_name)

-- name: table_get
-- One table as it was seen last. Index: primary key.
SELECT * FROM penstock.maintained_table WHERE catalog = :catalog AND db = :db AND table_name = :table_name

-- name: table_list
-- Tables, the worst first, and before them those that cannot be read. A deployment has some
-- thousands at most, so it is read whole.
SELECT *, count(*) OVER () AS total FROM penstock.maintained_table
WHERE (:catalog::text IS NULL OR catalog = :catalog) AND (:db::text IS NULL OR db = :db)
  AND (:enabled::boolean IS NULL OR enabled = :enabled)
  AND (:level::text IS NULL
    OR :level = CASE WHEN error IS NULL THEN health->>'level' ELSE 'unreadable' END)
ORDER BY score NULLS FIRST, catalog, db, table_name LIMIT :limit OFFSET :offset

-- name: table_locations
-- Where the tables of other catalogs are, as they were seen last: some thousands at most.
SELECT catalog, db, table_name, facts->>'location' AS location FROM penstock.maintained_table
WHERE catalog <> ALL (:catalogs::text[]) AND facts->>'location' IS NOT NULL

-- name: table_put
-- What a catalog said of a table, in the place of what it said before. Index: primary key.
INSERT INTO penstock.maintained_table (catalog, db, table_name, enabled, score, facts, health, error)
VALUES (:catalog, :db, :table_name, :enabled, :score, :facts::jsonb, :health::jsonb, :error)
ON CONFLICT (catalog, db, table_name) DO UPDATE SET
  enabled = excluded.enabled, score = excluded.score, facts = excluded.facts, health = excluded.health,
  error = excluded.error, seen_at = penstock.now()

-- name: table_status
-- How fresh the copy is, a catalog.
SELECT catalog, count(*) AS tables, min(seen_at) AS oldest, max(seen_at) AS newest,
  count(*) FILTER (WHERE error IS NOT NULL) AS failed
FROM penstock.maintained_table GROUP BY catalog ORDER BY catalog
