-- Where the tables of other catalogs are, as they were seen last: some thousands at most.
SELECT catalog, db, table_name, facts->>'location' AS location FROM penstock.maintained_table
WHERE catalog <> ALL (:catalogs::text[]) AND facts->>'location' IS NOT NULL
