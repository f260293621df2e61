-- Primary and foreign keys of one schema; a partition repeats its parent's, so only the parent's are told.
SELECT
  c.relname::text,
  ARRAY(
    SELECT a.attname::text
    FROM unnest(k.conkey) WITH ORDINALITY AS u (attnum, place)
    JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = u.attnum
    ORDER BY u.place
  ),
  CASE
    WHEN f.oid IS NULL THEN NULL
    WHEN f.relnamespace = c.relnamespace THEN f.relname::text
    ELSE format('%s.%s', fn.nspname, f.relname)
  END,
  ARRAY(
    SELECT a.attname::text
    FROM unnest(k.confkey) WITH ORDINALITY AS u (attnum, place)
    JOIN pg_attribute AS a ON a.attrelid = k.confrelid AND a.attnum = u.attnum
    ORDER BY u.place
  )
FROM pg_constraint AS k
JOIN pg_class AS c ON c.oid = k.conrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_class AS f ON f.oid = k.confrelid
LEFT JOIN pg_namespace AS fn ON fn.oid = f.relnamespace
WHERE n.nspname = :schema AND k.contype IN ('p', 'f') AND NOT c.relispartition
ORDER BY c.relname, k.contype = 'f', k.conname
