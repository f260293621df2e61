-- The partitions that hold rows, and whether each can be read by its pages. A partition's own row security does not
-- count when the parent is read, but would when it is read itself.
SELECT
  format('%I.%I', n.nspname, c.relname),
  c.relkind = 'r' AND a.amname = 'heap' AND NOT c.relrowsecurity AND has_table_privilege(c.oid, 'SELECT'),
  CASE WHEN c.relpages > 0 THEN greatest(c.reltuples, 0)::float8 / c.relpages * pg_relation_size(c.oid) / current_setting('block_size')::int8 ELSE -1 END,
  pg_relation_size(c.oid) / current_setting('block_size')::int8
FROM pg_partition_tree(:oid::int8::oid) AS t
JOIN pg_class AS c ON c.oid = t.relid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_am AS a ON a.oid = c.relam
WHERE t.isleaf
ORDER BY c.oid
