-- Tables, the worst first, and before them those that cannot be read. A deployment has some
-- thousands at most, so it is read whole.
SELECT *, count(*) OVER () AS total FROM penstock.maintained_table
WHERE (:catalog::text IS NULL OR catalog = :catalog) AND (:db::text IS NULL OR db = :db)
  AND (:enabled::boolean IS NULL OR enabled = :enabled)
  AND (:level::text IS NULL
    OR :level = CASE WHEN error IS NULL THEN health->>'level' ELSE 'unreadable' END)
ORDER BY score NULLS FIRST, catalog, db, table_name LIMIT :limit OFFSET :offset
