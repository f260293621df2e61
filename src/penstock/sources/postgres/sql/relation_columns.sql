-- The columns of relations by their names as a query writes them, the system's columns as well.
-- A view has no system columns of its own.
SELECT r.name::text, array_agg(a.attname::text)
FROM unnest(:names::text[]) AS r (name)
JOIN pg_attribute AS a ON a.attrelid = to_regclass(r.name)
WHERE NOT a.attisdropped
GROUP BY r.name
