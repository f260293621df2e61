-- What ANALYZE knows of a column's spread: values with about equal numbers of rows between them. The most common values
-- are not among them, so where those make up much of the column nothing is known.
SELECT histogram_bounds::text::text[]
FROM pg_stats
WHERE schemaname = :schema AND tablename = :table AND attname = :column AND histogram_bounds IS NOT NULL
  AND coalesce((SELECT sum(share) FROM unnest(most_common_freqs) AS share), 0) < 0.05
ORDER BY inherited DESC
LIMIT 1
