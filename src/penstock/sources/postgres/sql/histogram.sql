-- What ANALYZE knows of a column's spread: values with about equal numbers of rows between them.
SELECT histogram_bounds::text::text[]
FROM pg_stats
WHERE schemaname = :schema AND tablename = :table AND attname = :column AND histogram_bounds IS NOT NULL
ORDER BY inherited DESC
LIMIT 1
