-- One relation, by its name as a query writes it; no row when there is none. Sizes are read, never counted.
SELECT
  c.oid::int8,
  c.relkind::text,
  COALESCE(a.amname = 'heap', false) AND current_setting('server_version_num')::int >= 140000,
  c.relrowsecurity,
  c.reltuples::float8,
  pg_relation_size(c.oid) / current_setting('block_size')::int8,
  current_setting('block_size')::int8
FROM pg_class AS c
LEFT JOIN pg_am AS a ON a.oid = c.relam
WHERE c.oid = to_regclass(:name::text)
