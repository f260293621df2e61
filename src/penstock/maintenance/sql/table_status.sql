-- How fresh the copy is, a catalog.
SELECT catalog, count(*) AS tables, min(seen_at) AS oldest, max(seen_at) AS newest,
  count(*) FILTER (WHERE error IS NOT NULL) AS failed
FROM penstock.maintained_table GROUP BY catalog ORDER BY catalog
